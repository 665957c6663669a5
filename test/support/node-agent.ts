// The node agent's side of the protocol with the node proxy, for tests.
import { closeSync, openSync } from 'node:fs'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { listenSeqpacket, type SeqpacketConnection } from '../../src/linux/index.ts'
import { zds } from '../../src/proto/index.ts'

export interface AgentPod {
  readonly uid: string
  readonly namespacePath: string
  readonly pod: { readonly name: string; readonly namespace: string; readonly serviceAccount: string }
}

export interface NodeAgent extends AsyncDisposable {
  /** Takes the next proxy's connection and hands it the pods. Resolves with the connection when all are acknowledged. */
  serve(pods: readonly AgentPod[]): Promise<AgentConnection>
}

export interface AgentConnection {
  add(pod: AgentPod): Promise<string>
  remove(uid: string): Promise<string>
  /** Says that the snapshot is complete, which `serve` has said already. */
  completeSnapshot(): Promise<string>
  close(): void
}

type Payload = zds.WorkloadRequest['payload']

export function listenNodeAgent(path: string): NodeAgent {
  const listener = listenSeqpacket(path)
  const connections: SeqpacketConnection[] = []
  return {
    async serve(pods) {
      const connection = await listener.accept()
      if (connection === undefined) throw new Error('the agent is closed')
      connections.push(connection)
      const hello = await connection.receive({ timeoutMs: 10_000 })
      if (hello === undefined) throw new Error('no hello')
      const { version } = fromBinary(zds.ZdsHelloSchema, hello.message)
      if (version !== zds.Version.V1) throw new Error(`unexpected version ${version}`)
      const say = async (payload: Payload, fd?: number): Promise<string> => {
        const message = toBinary(zds.WorkloadRequestSchema, create(zds.WorkloadRequestSchema, { payload }))
        await connection.send(message, fd === undefined ? [] : [fd])
        const answer = await connection.receive({ timeoutMs: 10_000 })
        if (answer === undefined) throw new Error('the proxy went away')
        const { payload: said } = fromBinary(zds.WorkloadResponseSchema, answer.message)
        return said.case === 'ack' ? said.value.error : 'no ack'
      }
      const add = async ({ uid, namespacePath, pod }: AgentPod) => {
        const fd = openSync(namespacePath, 'r')
        try {
          const workloadInfo = create(zds.WorkloadInfoSchema, pod)
          return await say({ case: 'add', value: create(zds.AddWorkloadSchema, { uid, workloadInfo }) }, fd)
        } finally {
          closeSync(fd)
        }
      }
      for (const pod of pods) {
        const error = await add(pod)
        if (error !== '') throw new Error(error)
      }
      const completeSnapshot = () => say({ case: 'snapshotSent', value: create(zds.SnapshotSentSchema) })
      const error = await completeSnapshot()
      if (error !== '') throw new Error(error)
      return {
        add,
        remove: (uid) => say({ case: 'del', value: create(zds.DelWorkloadSchema, { uid }) }),
        completeSnapshot,
        close: () => connection.close(),
      }
    },
    async [Symbol.asyncDispose]() {
      for (const connection of connections) connection.close()
      listener.close()
    },
  }
}
