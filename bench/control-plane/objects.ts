// The objects of a large mesh, as big as real ones: a pod carries its volumes, environment, tolerations and managed fields.
import type { KubeObject } from '../../src/api/index.ts'

export interface MeshSize {
  readonly services: number
  readonly pods: number
  readonly nodes: number
}

const servicesEach = 20

export const namespaceOf = (service: number): string => `team-${Math.floor(service / servicesEach)}`

export function* meshObjects(size: MeshSize): Iterable<KubeObject> {
  yield namespaceObject('istio-system', {})
  for (let at = 0; at * servicesEach < size.services; at += 1) {
    yield namespaceObject(`team-${at}`, { 'istio.io/dataplane-mode': 'ambient' })
  }
  for (let at = 0; at < size.nodes; at += 1) yield nodeObject(at)
  for (let at = 0; at < size.services; at += 1) yield serviceObject(at)
  for (let at = 0; at < size.pods; at += 1) yield podObject(at, size, 0)
}

function namespaceObject(name: string, labels: Record<string, string>): KubeObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, uid: name, labels }, status: { phase: 'Active' } }
}

function nodeObject(at: number): KubeObject {
  const labels = { 'topology.kubernetes.io/region': 'eu', 'topology.kubernetes.io/zone': `eu-${at % 3}` }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: `node-${at}`, uid: `node-${at}`, labels } }
}

function serviceObject(at: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `svc-${at}`, namespace: namespaceOf(at), uid: `svc-${at}`, labels: { app: `app-${at}` } },
    spec: {
      clusterIP: `10.96.${at >> 8}.${at & 255}`,
      clusterIPs: [`10.96.${at >> 8}.${at & 255}`],
      selector: { app: `app-${at}` },
      ports: [{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }],
    },
  }
}

/** `round` counts the changes made to the pod: each gives its workload another canonical revision. */
export function podObject(at: number, size: MeshSize, round: number): KubeObject {
  const service = at % size.services
  const app = `app-${service}`
  const name = `app-${service}-7d9f8b6c5d-${at.toString(36).padStart(5, '0')}`
  const ip = `10.${1 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`
  const time = '2026-01-01T00:00:00Z'
  const condition = (type: string) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: time })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      generateName: `app-${service}-7d9f8b6c5d-`,
      namespace: namespaceOf(service),
      uid: `00000000-0000-4000-8000-${at.toString(16).padStart(12, '0')}`,
      creationTimestamp: time,
      labels: { app, 'pod-template-hash': '7d9f8b6c5d', version: `v${round}`, team: namespaceOf(service) },
      annotations: { 'ambient.istio.io/redirection': 'enabled', 'prometheus.io/scrape': 'true' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `app-${service}-7d9f8b6c5d`,
          uid: `rs-${service}`,
          controller: true,
        },
      ],
      managedFields: managedFields(time),
    },
    spec: {
      nodeName: `node-${at % size.nodes}`,
      serviceAccountName: app,
      serviceAccount: app,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      securityContext: { runAsNonRoot: true },
      tolerations: ['not-ready', 'unreachable'].map((taint) => ({
        key: `node.kubernetes.io/${taint}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      })),
      volumes: [
        { name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } },
        {
          name: 'kube-api-access',
          projected: {
            defaultMode: 420,
            sources: [
              { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
              { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            ],
          },
        },
      ],
      containers: [
        {
          name: 'app',
          image: `registry.example.com/${app}:1.0.${service}`,
          imagePullPolicy: 'IfNotPresent',
          command: ['/bin/server', '--port=8080', '--log-level=info'],
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
          env: Array.from({ length: 12 }, (_, nth) => ({
            name: `SETTING_${nth}`,
            value: `value of setting ${nth} of ${app}`,
          })),
          resources: { limits: { cpu: '1', memory: '512Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
          readinessProbe: {
            httpGet: { path: '/ready', port: 8080, scheme: 'HTTP' },
            periodSeconds: 5,
            timeoutSeconds: 1,
          },
          livenessProbe: {
            httpGet: { path: '/live', port: 8080, scheme: 'HTTP' },
            periodSeconds: 10,
            timeoutSeconds: 1,
          },
          volumeMounts: [
            { name: 'config', mountPath: '/etc/app', readOnly: true },
            { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
          ],
          terminationMessagePath: '/dev/termination-log',
        },
      ],
    },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      hostIP: `192.168.0.${at % size.nodes}`,
      qosClass: 'Burstable',
      startTime: time,
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
      containerStatuses: [
        {
          name: 'app',
          ready: true,
          started: true,
          restartCount: 0,
          image: `registry.example.com/${app}:1.0.${service}`,
          imageID: `registry.example.com/${app}@sha256:${'0'.repeat(64)}`,
          containerID: `containerd://${at.toString(16).padStart(64, '0')}`,
          state: { running: { startedAt: time } },
        },
      ],
    },
  }
}

function managedFields(time: string): unknown[] {
  const leaf = {}
  const container = { '.': leaf, 'f:image': leaf, 'f:name': leaf, 'f:env': leaf, 'f:ports': leaf, 'f:resources': leaf }
  return ['kube-controller-manager', 'kubelet'].map((manager) => ({
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:spec': { 'f:containers': { 'k:{"name":"app"}': container } },
      'f:status': { 'f:phase': leaf, 'f:podIP': leaf },
    },
  }))
}

export function strictMesh(): KubeObject {
  return {
    apiVersion: 'security.istio.io/v1',
    kind: 'PeerAuthentication',
    metadata: { name: 'default', namespace: 'istio-system', uid: 'strict' },
    spec: { mtls: { mode: 'STRICT' } },
  }
}

export function policyObject(nth: number): KubeObject {
  return {
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: { name: `allow-${nth}`, namespace: 'team-0', uid: `allow-${nth}` },
    spec: { rules: [{ from: [{ source: { namespaces: ['team-1'] } }] }] },
  }
}
