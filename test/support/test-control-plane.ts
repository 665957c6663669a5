// A control plane for tests: xDS and certificates over TLS inside a network namespace, with content that the test sets.
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { type Metadata, Server, ServerCredentials } from '@grpc/grpc-js'
import { certificateServiceDefinition } from '../../src/ca/client/index.ts'
import type { ServingCertificate } from '../../src/ca/index.ts'
import { createSocket, openNetworkNamespace } from '../../src/linux/index.ts'
import { createMetricsRegistry, silentLogging } from '../../src/observability/index.ts'
import { ca, security, workload } from '../../src/proto/index.ts'
import {
  createXdsServer,
  type EncodedResource,
  type ProxyNode,
  type ResourceChange,
  type ResourceSource,
} from '../../src/xds/index.ts'
import { ipFromBytes } from '../../src/ztunnel/state/address.ts'
import { createTestPki, type TestPki } from './test-pki.ts'

type Headers = ReturnType<Metadata['getMap']>

type Init<S extends Parameters<typeof create>[0]> = Parameters<typeof create<S>>[1]

export interface TestControlPlane extends AsyncDisposable {
  /** `https://ip:port`. */
  readonly address: string
  readonly roots: string
  /** A certificate of the mesh for a SPIFFE id, for peers that are no node proxy. */
  issue(spiffeId: string): Promise<ServingCertificate>
  intermediate: TestPki['intermediate']
  /** As issue, with dates. */
  issueDated: TestPki['issueDated']
  setWorkload(init: Init<typeof workload.WorkloadSchema> & { uid: string }): void
  setService(init: Init<typeof workload.ServiceSchema> & { namespace: string; hostname: string }): void
  setPolicy(init: Init<typeof security.AuthorizationSchema> & { namespace: string; name: string }): void
  removePolicy(key: string): void
  removeAddress(key: string): void
  /** Serial numbers (hex) of the certificates that proxies were given for an identity. */
  issuedSerials(spiffeId: string): readonly string[]
  /** A revocation list of the root, PEM. */
  revocationList(serials: readonly string[]): Promise<string>
  /** What the CA does with requests: sign them, never answer, answer with other than what was asked for. */
  caBehaviour: 'sign' | 'hang' | 'wrong-identity' | 'wrong-key' | 'expired' | 'garbage'
  /** The tokens that requests for certificates came with, in order. */
  readonly tokens: readonly string[]
  /** What came with each stream and each request for a certificate, by header name, in order. */
  readonly headers: { readonly xds: readonly Headers[]; readonly ca: readonly Headers[] }
  /** Who the streams were of. */
  readonly nodes: readonly ProxyNode[]
  /** Names that clients asked for one by one. */
  readonly asked: ReadonlySet<string>
  /** Cuts every connection; new ones are taken. */
  cutConnections(): void
}

const port = 15012

export async function startControlPlane(
  namespacePath: string,
  ip: string,
  options: { readonly onDemand?: boolean } = {},
): Promise<TestControlPlane> {
  const pki = await createTestPki()
  const headers: { readonly xds: Headers[]; readonly ca: Headers[] } = { xds: [], ca: [] }
  const nodes: ProxyNode[] = []
  const serving = await pki.issue(ip)
  const addresses = createSource('type.googleapis.com/istio.workload.Address')
  const policies = createSource('type.googleapis.com/istio.security.Authorization')
  const xds = createXdsServer({
    types: [
      { source: addresses, isWildcard: options.onDemand !== true },
      { source: policies, isWildcard: true },
    ],
    async authenticate(call) {
      headers.xds.push(call.metadata.getMap())
      return ['spiffe://cluster.local/ns/istio-system/sa/ztunnel']
    },
    async attend({ node }) {
      nodes.push(node)
      return undefined
    },
    checkNodeIdentity: false,
    controlPlane: 'test',
    version: 'test',
    quietTimes: { afterMs: 0, maxMs: 1 },
    metrics: createMetricsRegistry(),
    log: silentLogging().scope('xds'),
  })
  const issued = new Map<string, readonly string[]>()
  let behaviour: TestControlPlane['caBehaviour'] = 'sign'
  const tokens: string[] = []
  const grpc = new Server()
  xds.addTo(grpc)
  grpc.addService(certificateServiceDefinition, {
    CreateCertificate(
      call: { request: ca.IstioCertificateRequest; metadata: Metadata },
      answer: (error: Error | null, value?: ca.IstioCertificateResponse) => void,
    ) {
      const { metadata, csr, validityDuration } = call.request
      const validitySeconds = Math.min(Number(validityDuration), 3600)
      headers.ca.push(call.metadata.getMap())
      tokens.push(String(call.metadata.get('authorization')[0] ?? '').replace('Bearer ', ''))
      const named = metadata?.ImpersonatedIdentity
      const asked = typeof named === 'string' ? named : 'spiffe://cluster.local/ns/default/sa/dedicated'
      if (behaviour === 'hang') return
      if (behaviour === 'garbage') {
        answer(null, create(ca.IstioCertificateResponseSchema, { certChain: ['garbage', 'more garbage'] }))
        return
      }
      if (behaviour === 'wrong-key' || behaviour === 'expired') {
        const [from, to] = behaviour === 'expired' ? [-7_200_000, -3_600_000] : [-60_000, 3_600_000]
        const dates = { notBefore: new Date(Date.now() + from), notAfter: new Date(Date.now() + to) }
        const key = behaviour === 'expired' ? { publicKeyOf: csr } : {}
        pki.issueDated(asked, dates, key).then(
          ({ chain }) => answer(null, create(ca.IstioCertificateResponseSchema, { certChain: [chain, pki.roots] })),
          (error: Error) => answer(error),
        )
        return
      }
      const identity = behaviour === 'wrong-identity' ? 'spiffe://cluster.local/ns/default/sa/another' : asked
      pki.authority.sign({ csrPem: csr, identities: [identity], validitySeconds }).then(
        (certChain) => {
          const [leaf] = certChain
          const serials = issued.get(identity) ?? []
          if (leaf !== undefined) issued.set(identity, [...serials, new X509Certificate(leaf).serialNumber])
          answer(null, create(ca.IstioCertificateResponseSchema, { certChain: [...certChain] }))
        },
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
  const sockets = new Set<net.Socket>()
  const listener = net.createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    injector.injectConnection(socket)
  })
  listener.listen({ fd })
  await once(listener, 'listening')

  return {
    address: `https://${ip}:${port}`,
    roots: pki.roots,
    headers,
    nodes,
    issue: (spiffeId) => pki.issue(spiffeId),
    intermediate: pki.intermediate,
    issueDated: pki.issueDated,
    setWorkload(init) {
      const message = create(workload.AddressSchema, {
        type: { case: 'workload', value: create(workload.WorkloadSchema, init) },
      })
      const ips = (init.addresses ?? []).map((bytes) => ipFromBytes(bytes) ?? '')
      const aliases = ips.map((ip) => `${init.network ?? ''}/${ip}`)
      addresses.put(init.uid, toBinary(workload.AddressSchema, message), {
        aliases,
        keys: Object.keys(init.services ?? {}),
        ...(init.node === undefined ? {} : { node: init.node }),
      })
    },
    setService(init) {
      const message = create(workload.AddressSchema, {
        type: { case: 'service', value: create(workload.ServiceSchema, init) },
      })
      const aliases = (init.addresses ?? []).map(
        ({ network, address }) => `${network ?? ''}/${ipFromBytes(address ?? new Uint8Array()) ?? ''}`,
      )
      addresses.put(`${init.namespace}/${init.hostname}`, toBinary(workload.AddressSchema, message), { aliases })
    },
    setPolicy(init) {
      const body = toBinary(security.AuthorizationSchema, create(security.AuthorizationSchema, init))
      policies.put(`${init.namespace}/${init.name}`, body)
    },
    removePolicy: (key) => policies.remove(key),
    removeAddress: (key) => addresses.remove(key),
    issuedSerials: (spiffeId) => issued.get(spiffeId) ?? [],
    revocationList: (serials) => pki.revocationList(serials),
    get caBehaviour() {
      return behaviour
    },
    set caBehaviour(next) {
      behaviour = next
    },
    tokens,
    asked: addresses.asked,
    cutConnections() {
      for (const socket of sockets) socket.destroy()
    },
    async [Symbol.asyncDispose]() {
      xds.close()
      listener.close()
      grpc.forceShutdown()
    },
  }
}

interface Placed {
  readonly aliases?: readonly string[]
  /** Services that bring it to those who ask for them. */
  readonly keys?: readonly string[]
  readonly node?: string
}

interface EditableSource extends ResourceSource {
  readonly asked: ReadonlySet<string>
  put(name: string, body: Uint8Array, placed?: Placed): void
  remove(name: string): void
}

function createSource(typeUrl: string): EditableSource {
  const resources = new Map<string, EncodedResource>()
  const places = new Map<string, Placed>()
  const asked = new Set<string>()
  const listeners = new Set<(changes: readonly ResourceChange[]) => void>()
  const keysOf = (name: string) => {
    const { aliases = [], keys = [] } = places.get(name) ?? {}
    return [name, ...aliases, ...keys]
  }
  const change = (name: string, now: EncodedResource | undefined, placed: Placed) => {
    const old = resources.get(name)
    const before = keysOf(name)
    const nodes = [places.get(name)?.node, placed.node].filter((node) => node !== undefined)
    if (now === undefined) resources.delete(name)
    else resources.set(name, now)
    places.set(name, placed)
    const reach = { keys: [...before, ...keysOf(name)], nodes }
    const told: ResourceChange = { name, reach: () => reach, ...(old && { old }), ...(now && { new: now }) }
    for (const listener of listeners) listener([told])
  }
  return {
    typeUrl,
    asked,
    synced: true,
    list: () => resources.values(),
    get: (name) => resources.get(name),
    lookup(key) {
      asked.add(key)
      const found = [...resources.values()].filter(({ name }) => keysOf(name).includes(key))
      // With a service come its workloads, whatever the service was asked for by.
      const names = new Set(found.map(({ name }) => name))
      const members = [...resources.values()].filter(({ name }) =>
        places.get(name)?.keys?.some((one) => names.has(one)),
      )
      return [...new Set([...found, ...members])]
    },
    namesOfNode: (node) => [...places].flatMap(([name, placed]) => (placed.node === node ? [name] : [])),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    put(name, body, placed = {}) {
      const version = createHash('sha256').update(body).digest('hex')
      change(name, { name, aliases: placed.aliases ?? [], version, body }, placed)
    },
    remove: (name) => change(name, undefined, {}),
  }
}
