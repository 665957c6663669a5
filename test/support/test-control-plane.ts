// A control plane for tests: xDS and certificates over TLS inside a network namespace, with content that the test sets.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { certificateServiceDefinition } from '../../src/ca/client/index.ts'
import type { ServingCertificate } from '../../src/ca/index.ts'
import { createSocket, openNetworkNamespace } from '../../src/linux/index.ts'
import { createMetricsRegistry, silentLogging } from '../../src/observability/index.ts'
import { ca, security, workload } from '../../src/proto/index.ts'
import { createXdsServer, type EncodedResource, type ResourceChange, type ResourceSource } from '../../src/xds/index.ts'
import { createTestPki } from './test-pki.ts'

type Init<S extends Parameters<typeof create>[0]> = Parameters<typeof create<S>>[1]

export interface TestControlPlane extends AsyncDisposable {
  /** `https://ip:port`. */
  readonly address: string
  readonly roots: string
  /** A certificate of the mesh for a SPIFFE id, for peers that are no node proxy. */
  issue(spiffeId: string): Promise<ServingCertificate>
  setWorkload(init: Init<typeof workload.WorkloadSchema> & { uid: string }): void
  setService(init: Init<typeof workload.ServiceSchema> & { namespace: string; hostname: string }): void
  setPolicy(init: Init<typeof security.AuthorizationSchema> & { namespace: string; name: string }): void
  removePolicy(key: string): void
}

const port = 15012

export async function startControlPlane(namespacePath: string, ip: string): Promise<TestControlPlane> {
  const pki = await createTestPki()
  const serving = await pki.issue(ip)
  const addresses = createSource('type.googleapis.com/istio.workload.Address')
  const policies = createSource('type.googleapis.com/istio.security.Authorization')
  const xds = createXdsServer({
    types: [
      { source: addresses, isWildcard: true },
      { source: policies, isWildcard: true },
    ],
    authenticate: async () => ['spiffe://cluster.local/ns/istio-system/sa/ztunnel'],
    checkNodeIdentity: false,
    controlPlane: 'test',
    version: 'test',
    quietTimes: { afterMs: 0, maxMs: 1 },
    metrics: createMetricsRegistry(),
    log: silentLogging().scope('xds'),
  })
  const grpc = new Server()
  xds.addTo(grpc)
  grpc.addService(certificateServiceDefinition, {
    CreateCertificate(
      call: { request: ca.IstioCertificateRequest },
      answer: (error: Error | null, value?: ca.IstioCertificateResponse) => void,
    ) {
      const { metadata, csr } = call.request
      const identity = metadata?.ImpersonatedIdentity
      pki.authority
        .sign({ csrPem: csr, identities: typeof identity === 'string' ? [identity] : [], validitySeconds: 3600 })
        .then(
          (certChain) => answer(null, create(ca.IstioCertificateResponseSchema, { certChain: [...certChain] })),
          (error: Error) => answer(error),
        )
    },
  })
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(serving.chain), private_key: Buffer.from(serving.privateKey) },
  ])
  const injector = grpc.createConnectionInjector(credentials)
  using namespace = openNetworkNamespace(namespacePath)
  const { fd } = createSocket({ family: 4, type: 'stream', bind: { ip, port } }, namespace)
  const listener = net.createServer((socket) => injector.injectConnection(socket))
  listener.listen({ fd })
  await once(listener, 'listening')

  return {
    address: `https://${ip}:${port}`,
    roots: pki.roots,
    issue: (spiffeId) => pki.issue(spiffeId),
    setWorkload(init) {
      const message = create(workload.AddressSchema, {
        type: { case: 'workload', value: create(workload.WorkloadSchema, init) },
      })
      addresses.put(init.uid, toBinary(workload.AddressSchema, message))
    },
    setService(init) {
      const message = create(workload.AddressSchema, {
        type: { case: 'service', value: create(workload.ServiceSchema, init) },
      })
      addresses.put(`${init.namespace}/${init.hostname}`, toBinary(workload.AddressSchema, message))
    },
    setPolicy(init) {
      const body = toBinary(security.AuthorizationSchema, create(security.AuthorizationSchema, init))
      policies.put(`${init.namespace}/${init.name}`, body)
    },
    removePolicy: (key) => policies.remove(key),
    async [Symbol.asyncDispose]() {
      xds.close()
      listener.close()
      grpc.forceShutdown()
    },
  }
}

interface EditableSource extends ResourceSource {
  put(name: string, body: Uint8Array): void
  remove(name: string): void
}

function createSource(typeUrl: string): EditableSource {
  const resources = new Map<string, EncodedResource>()
  const listeners = new Set<(changes: readonly ResourceChange[]) => void>()
  const change = (name: string, now: EncodedResource | undefined) => {
    const old = resources.get(name)
    if (now === undefined) resources.delete(name)
    else resources.set(name, now)
    const told = { name, keys: [name], nodes: [], ...(old && { old }), ...(now && { new: now }) }
    for (const listener of listeners) listener([told])
  }
  return {
    typeUrl,
    synced: true,
    list: () => resources.values(),
    get: (name) => resources.get(name),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    put(name, body) {
      const version = createHash('sha256').update(body).digest('hex')
      change(name, { name, aliases: [], version, body })
    },
    remove: (name) => change(name, undefined),
  }
}
