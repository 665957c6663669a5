// The messages between node agent and node proxy, as packets.
import { closeSync } from 'node:fs'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { zds } from '../../proto/index.ts'
import type { PodInfo } from '../model.ts'

/** What the agent says. The receiver owns the descriptor. */
export type AgentMessage =
  | { readonly kind: 'add'; readonly uid: string; readonly pod: PodInfo | undefined; readonly namespaceFd: number }
  | { readonly kind: 'keep'; readonly uid: string }
  | { readonly kind: 'delete'; readonly uid: string }
  | { readonly kind: 'snapshot-sent' }

/** A packet that cannot be understood; the connection is not worth keeping. */
export class ZdsPacketError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ZdsPacketError'
  }
}

/** A longer packet is an error. */
export const maxPacketBytes = 1024

/** Reads a packet. Throws a ZdsPacketError, with every descriptor closed. */
export function decodeAgentPacket(packet: { message: Uint8Array; descriptors: readonly number[] }): AgentMessage {
  try {
    return decode(packet)
  } catch (error) {
    for (const descriptor of packet.descriptors) closeSync(descriptor)
    if (error instanceof ZdsPacketError) throw error
    throw new ZdsPacketError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function decode({ message, descriptors }: { message: Uint8Array; descriptors: readonly number[] }): AgentMessage {
  const { payload } = fromBinary(zds.WorkloadRequestSchema, message)
  const [descriptor] = descriptors
  if (descriptors.length > 1) throw new ZdsPacketError(`Expected 1 FD, got ${descriptors.length}`)
  if (payload.case === 'add') {
    if (descriptor === undefined) throw new ZdsPacketError('No control message')
    const { uid, workloadInfo } = payload.value
    const pod = workloadInfo && {
      name: workloadInfo.name,
      namespace: workloadInfo.namespace,
      serviceAccount: workloadInfo.serviceAccount,
    }
    return { kind: 'add', uid, pod, namespaceFd: descriptor }
  }
  if (descriptor !== undefined) throw new ZdsPacketError('Unexpected control message')
  switch (payload.case) {
    case 'keep':
      return { kind: 'keep', uid: payload.value.uid }
    case 'del':
      return { kind: 'delete', uid: payload.value.uid }
    case 'snapshotSent':
      return { kind: 'snapshot-sent' }
    case undefined:
      throw new ZdsPacketError('no payload')
  }
}

export function encodeHello(): Uint8Array {
  return toBinary(zds.ZdsHelloSchema, create(zds.ZdsHelloSchema, { version: zds.Version.V1 }))
}

/** The answer to a message: an empty error is success. Fits in a packet. */
export function encodeAck(error = ''): Uint8Array {
  const text = error.slice(0, maxPacketBytes / 4)
  const response = create(zds.WorkloadResponseSchema, { payload: { case: 'ack', value: { error: text } } })
  return toBinary(zds.WorkloadResponseSchema, response)
}
