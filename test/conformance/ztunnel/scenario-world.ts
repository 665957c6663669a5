// Builds a scenario: pods, nodes and services in network namespaces, their state at the control plane, their applications and proxies.
import { join } from 'node:path'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { TlsCredentials } from '../../../src/hbone/index.ts'
import { workload as proto } from '../../../src/proto/index.ts'
import { parseSpiffeId, spiffeId } from '../../../src/ztunnel/decisions/index.ts'
import { ipToBytes } from '../../../src/ztunnel/state/index.ts'
import { createMeshLab, type LabProxy, type MeshLab } from '../../support/mesh-lab.ts'
import { apps } from './scenario-apps.ts'
import type { Data } from './topic.ts'

export interface ScenarioWorld extends AsyncDisposable {
  readonly lab: MeshLab
  readonly proxies: ReadonlyMap<string, LabProxy>
  readonly nodes: readonly string[]
  /** The file that the proxy of remote-node reads revocation lists from. */
  readonly revocationLists: string
  /** Client addresses that applications saw. */
  readonly seen: readonly string[]
  /** `<name>` → the address of the pod. */
  fill(text: string): string
  credentials(spiffeId: string): Promise<TlsCredentials>
}

type GatewayInit = MessageInitShape<typeof proto.GatewayAddressSchema>

/** These applications hold port 15008 themselves, so no proxy can serve their pods. */
const endsHbone = new Set(['hbone-echo', 'hbone-forward-to-echo'])

export async function buildScenario(one: Data): Promise<ScenarioWorld> {
  const pods = Object.entries(one.pods as Record<string, Data>)
  const addresses = new Map(pods.map(([name], index) => [name, `10.77.2.${index + 1}`]))
  const nodes = [...new Set(pods.map(([, pod]) => pod.node as string))]
  for (const [index, node] of nodes.entries()) addresses.set(`ztunnel-${node}`, `10.77.1.${index + 1}`)
  const isCaptured = (pod: Data): boolean => pod.captured !== false && !endsHbone.has(pod.app)
  const fill = (text: string): string => text.replace(/<([^>]+)>/g, (_, name: string) => addresses.get(name) ?? name)
  await using stack = new AsyncDisposableStack()
  const lab = stack.use(
    await createMeshLab({
      nodes,
      pods: pods.map(([name, pod]) => ({
        name,
        ip: addresses.get(name) ?? '',
        ...(isCaptured(pod) ? { node: pod.node as string } : {}),
      })),
    }),
  )
  const credentials = async (identity: string): Promise<TlsCredentials> => {
    const { chain, privateKey } = await lab.controlPlane.issue(identity)
    return { certificateChain: String(chain), privateKey: String(privateKey), roots: lab.controlPlane.roots }
  }
  const seen: string[] = []
  for (const [name, pod] of pods) {
    const identity = identityOf(name, pod)
    lab.controlPlane.setWorkload({
      uid: `uid-${name}`,
      name,
      namespace: 'default',
      serviceAccount: identity.serviceAccount,
      trustDomain: identity.trustDomain,
      node: pod.node,
      network: pod.network ?? '',
      hostname: pod.hostname ?? '',
      addresses: pod.networkGateway === undefined ? [ipToBytes(addresses.get(name) ?? '')] : [],
      tunnelProtocol:
        isCaptured(pod) || pod.protocol === 'HBONE' ? proto.TunnelProtocol.HBONE : proto.TunnelProtocol.NONE,
      services: Object.fromEntries(
        Object.entries(pod.services ?? {}).map(([key, ports]) => [key, { ports: portsOf(ports) }]),
      ),
      ...(pod.waypoint === undefined ? {} : { waypoint: gatewayOf(`/${fill(pod.waypoint)}`) }),
      ...(pod.waypointHostname === undefined ? {} : { waypoint: gatewayOf(pod.waypointHostname) }),
      ...(pod.networkGateway === undefined ? {} : { networkGateway: gatewayOf(fill(pod.networkGateway.destination)) }),
      ...(pod.applicationTunnel === undefined
        ? {}
        : {
            applicationTunnel: { protocol: proto.ApplicationTunnel_Protocol.PROXY, port: pod.applicationTunnel.port },
          }),
    })
    const app = pod.app === undefined ? undefined : apps[pod.app]
    const own = await credentials(spiffeId(identity))
    await app?.({ lab, pod: name, credentials: own, forwardTo: addresses.get('echo') ?? '', seen })
  }
  for (const node of nodes) {
    const name = `ztunnel-${node}`
    lab.controlPlane.setWorkload({
      uid: `uid-${name}`,
      name,
      namespace: 'default',
      serviceAccount: name,
      node,
      addresses: [ipToBytes(addresses.get(name) ?? '')],
      tunnelProtocol: proto.TunnelProtocol.HBONE,
    })
  }
  for (const [name, service] of Object.entries((one.services ?? {}) as Record<string, Data>)) {
    lab.controlPlane.setService({
      name,
      namespace: 'default',
      hostname: `${name}.default.svc.cluster.local`,
      addresses: [{ network: '', address: ipToBytes(service.vip) }],
      ports: portsOf(service.ports),
      subjectAltNames: service.subjectAltNames ?? [],
      ...(service.waypoint === undefined ? {} : { waypoint: gatewayOf(`/${fill(service.waypoint)}`) }),
    })
  }
  setPolicies(lab, one.policies ?? [])
  const revocationLists = join(lab.directory, 'crl.pem')
  const proxies = new Map<string, LabProxy>()
  for (const node of nodes) {
    const self = `ztunnel-${node}`
    const env = { POD_NAME: self, POD_NAMESPACE: 'default', SERVICE_ACCOUNT: self, RUST_LOG: 'info' }
    const revocation: Readonly<Record<string, string>> = node === 'remote-node' ? { CRL_PATH: revocationLists } : {}
    proxies.set(node, await lab.startProxy(node, { ...env, ...revocation }))
  }
  const owned = stack.move()
  return {
    lab,
    proxies,
    nodes,
    revocationLists,
    seen,
    fill,
    credentials,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

function identityOf(name: string, pod: Data) {
  const given = pod.identity === undefined ? undefined : parseSpiffeId(pod.identity)
  // A served pod is announced under its own name as service account; only its trust domain can be another.
  const trustDomain = given?.trustDomain ?? 'cluster.local'
  const isServed = pod.captured !== false && pod.networkGateway === undefined
  const serviceAccount = given === undefined || isServed ? name : given.serviceAccount
  return { trustDomain, namespace: 'default', serviceAccount }
}

function gatewayOf(destination: string): GatewayInit {
  const slash = destination.indexOf('/')
  const [first, rest] = [destination.slice(0, slash), destination.slice(slash + 1)]
  const isAddress = /^[\d.]+$/.test(rest)
  return {
    hboneMtlsPort: 15008,
    destination: isAddress
      ? { case: 'address', value: create(proto.NetworkAddressSchema, { network: first, address: ipToBytes(rest) }) }
      : { case: 'hostname', value: create(proto.NamespacedHostnameSchema, { namespace: first, hostname: rest }) },
  }
}

function portsOf(ports: Data): { servicePort: number; targetPort: number }[] {
  return Object.entries(ports).map(([servicePort, targetPort]) => ({
    servicePort: Number(servicePort),
    targetPort: Number(targetPort),
  }))
}

/** The scenarios' policies name principals only. */
function setPolicies(lab: MeshLab, policies: readonly Data[]): void {
  for (const { name, namespace, scope, action, rules } of policies) {
    lab.controlPlane.setPolicy({
      name,
      namespace,
      scope: { Global: 0, Namespace: 1, WorkloadSelector: 2 }[scope as 'Global'],
      action: { Allow: 0, Deny: 1 }[action as 'Allow'],
      groups: rules.map((rule: Data) => ({
        rules: rule.map((clause: Data) => ({
          matches: clause.map((match: Data) => ({
            principals: match.principals.map((one: Data) => ({ matchType: { case: 'exact', value: one.Exact } })),
          })),
        })),
      })),
    })
  }
}
