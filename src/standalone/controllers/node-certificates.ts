// Certificates of nodes' own ports: a node's request is approved when it asks for its own names and addresses and nothing else.
import { webcrypto } from 'node:crypto'
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { deleteExactly, own, startController } from './controller.ts'
import { type EndpointSlice, keyOf, type Node, type Service, type SigningRequest, timestamp } from './objects.ts'

const signerName = 'kubernetes.io/kubelet-serving'
const serviceNameLabel = 'kubernetes.io/service-name'
const usages: readonly string[] = ['digital signature', 'key encipherment', 'server auth']

/** Requests are kept this long after they were made, so that it can be seen what became of them. */
const keptMs = 3600_000
/** A node may ask before what it says of itself has arrived here: so long it is looked at again. */
const patienceMs = 60_000
const againMs = 1_000

export function startNodeCertificates(cluster: Cluster): AsyncDisposable {
  const told = new Set<string>()
  return startController(cluster, {
    name: 'node-certificates',
    sources: [own(cluster.signingRequests)],
    async work(key) {
      const request = cluster.signingRequests.get(keyOf(key))
      if (request === undefined) {
        told.delete(key)
        return undefined
      }
      if (request.spec?.signerName !== signerName) return undefined
      const ageMs = Date.now() - Date.parse(request.metadata.creationTimestamp ?? '')
      if (ageMs >= keptMs) {
        await deleteExactly(cluster, resources.certificateSigningRequests, request)
        return undefined
      }
      const untilDeleted = keptMs - ageMs
      if ((request.status?.conditions?.length ?? 0) > 0) return untilDeleted
      const { nodes, services, endpointSlices } = cluster
      const others = { nodes: nodes.list(), services: services.list(), endpointSlices: endpointSlices.list() }
      const why = await whyNot(request, others)
      if (why === undefined) {
        await approve(cluster, request)
        return untilDeleted
      }
      if (ageMs < patienceMs) return againMs
      if (!told.has(key)) cluster.log.warn('certificate request of a node not approved', { request: key, reason: why })
      told.add(key)
      return untilDeleted
    },
  })
}

async function approve(cluster: Cluster, request: SigningRequest): Promise<void> {
  const now = timestamp()
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message: "the names and addresses are the node's own",
    lastUpdateTime: now,
    lastTransitionTime: now,
  }
  await cluster.client.replace(
    resources.certificateSigningRequests,
    { ...request, status: { ...request.status, conditions: [condition] } },
    { subresource: 'approval' },
  )
  cluster.log.info('certificate of a node approved', {
    request: request.metadata.name,
    user: request.spec?.username ?? '',
  })
}

/** Who else may be meant by an address: the authority that signs is that of the API server's own certificate. */
export interface Addressed {
  readonly nodes: readonly Node[]
  readonly services: readonly Service[]
  readonly endpointSlices: readonly EndpointSlice[]
}

/** Why the request is not to be approved; undefined when it is. */
export async function whyNot({ spec }: SigningRequest, addressed: Addressed): Promise<string | undefined> {
  const { nodes } = addressed
  const { username = '', groups = [], request = '', usages: wanted = [] } = spec ?? {}
  const name = /^system:node:(.+)$/.exec(username)?.[1]
  if (name === undefined || !groups.includes('system:nodes')) return `${username} is no node`
  if (!wanted.includes('server auth') || !wanted.every((usage) => usages.includes(usage))) {
    return `usages ${wanted.join(', ')}: expected ${usages.join(', ')}`
  }
  const asked = await parse(request)
  if (asked === undefined) return 'it is no certificate request, or has a wrong signature'
  if (asked.subject !== `O=system:nodes, CN=${username}`) return `the subject is ${asked.subject}`
  const node = nodes.find(({ metadata }) => metadata.name === name)
  if (node === undefined) return `there is no node ${name}`
  // The name is the node's by its credentials; every other name is only what it says of itself.
  const [names, addresses] = [[name], addressesOf(node)]
  const foreign = asked.names.find(
    ({ type, value }) => !(type === 'dns' ? names : type === 'ip' ? addresses : []).includes(value),
  )
  if (foreign !== undefined) return `${foreign.type} name ${foreign.value} is not the node's`
  const taken = asked.names.find(({ type, value }) => type === 'ip' && isOthers(value, node, addressed))
  return taken === undefined ? undefined : `${taken.value} is another's as well`
}

/** Of another node, of a service, of the API server, or of every machine. */
function isOthers(ip: string, node: Node, { nodes, services, endpointSlices }: Addressed): boolean {
  if (isLoopback(ip)) return true
  const apiServer = endpointSlices.filter(
    ({ metadata }) => metadata.namespace === 'default' && metadata.labels?.[serviceNameLabel] === 'kubernetes',
  )
  return (
    nodes.some((other) => other !== node && addressesOf(other).includes(ip)) ||
    // Not the external ones: those may well be a node's.
    services.some(({ spec }) => spec?.clusterIP === ip || spec?.clusterIPs?.includes(ip) === true) ||
    apiServer.some(({ endpoints }) => endpoints.some((endpoint) => endpoint.addresses.includes(ip)))
  )
}

const isLoopback = (ip: string): boolean => ip.startsWith('127.') || ip === '::1'

function addressesOf({ status }: Node): string[] {
  return (status?.addresses ?? []).filter(({ type }) => type.endsWith('IP')).map(({ address }) => address)
}

interface Asked {
  readonly subject: string
  readonly names: readonly { readonly type: string; readonly value: string }[]
}

async function parse(request: string): Promise<Asked | undefined> {
  // Loaded only here: nodes ask once a year.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as unknown as typeof globalThis.crypto)
  try {
    const parsed = new x509.Pkcs10CertificateRequest(Buffer.from(request, 'base64').toString('utf8'))
    if (!(await parsed.verify())) return undefined
    // A request carries extensions by their identifier.
    const extension = parsed.getExtension('2.5.29.17')
    const names = extension === null ? [] : new x509.SubjectAlternativeNameExtension(extension.rawData).names.items
    return { subject: parsed.subject, names: names.map(({ type, value }) => ({ type, value })) }
  } catch {
    return undefined
  }
}
