// The ambient index of a large mesh: how long the first build takes, and what single changes cost.
import type { KubeObject } from '../src/api/index.ts'
import { createGraph } from '../src/collections/index.ts'
import { createAmbientIndex, createAmbientInputs, defaultAmbientSettings } from '../src/discovery/index.ts'

const namespaces = 500
const servicesEach = 10
const podsEach = 100
const crowd = 5_000
const cluster = 'c1'

export async function run(): Promise<Record<string, number | string>[]> {
  const graph = createGraph({
    report: (report) => {
      throw new Error(`unexpected report: ${JSON.stringify(report)}`)
    },
  })
  const inputs = createAmbientInputs(graph)
  const index = createAmbientIndex({ inputs, settings: { ...defaultAmbientSettings, clusterId: cluster } })
  let changed = 0
  index.addresses.subscribe((changes) => {
    changed += changes.length
  })
  const before = process.cpuUsage()
  graph.transaction(() => {
    for (let node = 0; node < 100; node += 1) inputs.feed(cluster, 'nodes').set(nodeObject(node) as never)
    for (let at = 0; at < namespaces; at += 1) {
      for (let service = 0; service < servicesEach; service += 1) {
        inputs.feed(cluster, 'services').set(serviceObject(at, service) as never)
      }
      for (let pod = 0; pod < podsEach; pod += 1) inputs.feed(cluster, 'pods').set(podObject(at, pod) as never)
    }
    for (const name of ['one', 'two']) inputs.feed(cluster, 'gateways').set(waypointObject(name) as never)
    inputs.feed(cluster, 'services').set(crowdService('one') as never)
    for (let pod = 0; pod < crowd; pod += 1) inputs.feed(cluster, 'pods').set(crowdPod(pod) as never)
    inputs.markSynced()
  })
  const used = process.cpuUsage(before)
  const timed = (change: () => void): Record<string, number> => {
    changed = 0
    const start = performance.now()
    change()
    return { ms: Math.round((performance.now() - start) * 100) / 100, resources: changed }
  }
  const rows: Record<string, number | string>[] = [
    {
      benchmark: 'ambient index: first build',
      pods: namespaces * podsEach + crowd,
      services: namespaces * servicesEach + 1,
      'cpu s': Math.round((used.user + used.system) / 1e4) / 100,
      'heap MB': Math.round(process.memoryUsage().heapUsed / 2 ** 20),
    },
  ]
  const enrolled = { annotations: { 'ambient.istio.io/redirection': 'enabled' } }
  const changes: Readonly<Record<string, () => void>> = {
    'a pod is enrolled': () => inputs.feed(cluster, 'pods').set(podObject(1, 3, enrolled) as never),
    'a node heartbeat': () => inputs.feed(cluster, 'nodes').set(nodeObject(1, { resourceVersion: '2' }) as never),
    'a policy selects 10 of 100 pods': () =>
      inputs.feed(cluster, 'authorizationPolicies').set(policyObject('ns5', 'app3') as never),
    'a service of 5,000 pods changes its waypoint': () =>
      inputs.feed(cluster, 'services').set(crowdService('two') as never),
    'a policy selects 3 of these': () =>
      inputs.feed(cluster, 'authorizationPolicies').set(policyObject('crowd', 'few') as never),
    'the whole mesh becomes strict': () => inputs.feed(cluster, 'peerAuthentications').set(strictObject() as never),
  }
  for (const [benchmark, change] of Object.entries(changes))
    rows.push({ benchmark: `ambient index: ${benchmark}`, ...timed(change) })
  return rows
}

function nodeObject(at: number, metadata = {}): KubeObject {
  const labels = { 'topology.kubernetes.io/zone': `z${at % 3}` }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: `node${at}`, labels, ...metadata } }
}

function serviceObject(namespace: number, at: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `svc${at}`, namespace: `ns${namespace}` },
    spec: {
      clusterIP: `10.${200 + Math.floor(namespace / 256)}.${namespace % 256}.${at}`,
      selector: { app: `app${at}` },
      ports: [{ name: 'http', port: 80, targetPort: 'web' }],
    },
  }
}

function podObject(namespace: number, at: number, metadata = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `pod${at}`,
      namespace: `ns${namespace}`,
      labels: { app: `app${at % servicesEach}` },
      ...metadata,
    },
    spec: {
      nodeName: `node${at}`,
      serviceAccountName: 'sa',
      containers: [{ name: 'app', ports: [{ name: 'web', containerPort: 8080 }] }],
    },
    status: {
      phase: 'Running',
      podIP: `10.${Math.floor(namespace / 256)}.${namespace % 256}.${at}`,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

/** A service of many pods in a namespace of its own, which goes through a waypoint. */
function crowdService(waypoint: string): KubeObject {
  const labels = { 'istio.io/use-waypoint': waypoint }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'crowd', namespace: 'crowd', labels },
    spec: { clusterIP: '10.210.0.1', selector: { crowd: 'yes' }, ports: [{ name: 'http', port: 80 }] },
  }
}

/** Three of them are of the app `few`. */
function crowdPod(at: number): KubeObject {
  const labels = { crowd: 'yes', app: at < 3 ? 'few' : 'many' }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `crowd${at}`, namespace: 'crowd', labels },
    spec: { nodeName: `node${at % 100}`, serviceAccountName: 'sa', containers: [{ name: 'app' }] },
    status: {
      phase: 'Running',
      podIP: `10.220.${at >> 8}.${at & 255}`,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

function waypointObject(name: string): KubeObject {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name, namespace: 'crowd' },
    spec: {
      gatewayClassName: 'istio-waypoint',
      listeners: [{ name: 'mesh', port: 15008, protocol: 'HBONE' }],
    },
    ...{ status: { addresses: [{ type: 'Hostname', value: `${name}.crowd.svc.cluster.local` }] } },
  } as KubeObject
}

function policyObject(namespace: string, app: string): KubeObject {
  return {
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: { name: 'p', namespace },
    spec: { selector: { matchLabels: { app } }, rules: [{}] },
  }
}

function strictObject(): KubeObject {
  return {
    apiVersion: 'security.istio.io/v1',
    kind: 'PeerAuthentication',
    metadata: { name: 'default', namespace: 'istio-system' },
    spec: { mtls: { mode: 'STRICT' } },
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await run(), undefined, 2)}\n`)
