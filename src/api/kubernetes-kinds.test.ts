import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KindDefinition, type KubeObject, loadKubernetesKinds } from './index.ts'

const kinds = await loadKubernetesKinds()

function kindOf(apiVersion: string, kind: string): KindDefinition {
  const found = kinds.find(
    (one) => (one.group === '' ? one.version : `${one.group}/${one.version}`) === apiVersion && one.kind === kind,
  )
  assert.ok(found, `${apiVersion} ${kind}`)
  return found
}

function prepared(object: object): KubeObject {
  const copy = structuredClone(object) as KubeObject
  kindOf(copy.apiVersion, copy.kind).applyDefaults?.(copy)
  return copy
}

function faults(object: object, old?: object): string[] {
  const copy = prepared(object)
  const { validate } = kindOf(copy.apiVersion, copy.kind)
  const causes = validate?.(copy, old === undefined ? undefined : prepared(old)) ?? []
  return causes.map(({ field, message }) => `${field}: ${message}`)
}

const metadata = { name: 'a', namespace: 'b' }
const container = { name: 'c', image: 'host' }
const pod = (spec: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  spec: { containers: [container], ...spec },
})
const service = (spec: object): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata,
  spec: { ports: [{ port: 80 }], ...spec },
})
const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [container] } }
const deployment = (spec: object): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata,
  spec: { selector: { matchLabels: { app: 'a' } }, template, ...spec },
})

test('every kind has a schema with apiVersion, kind and metadata', () => {
  for (const { kind, schema } of kinds) {
    assert.ok(schema?.properties?.apiVersion && schema.properties.kind && schema.properties.metadata, kind)
  }
})

test('a service gets protocol, target port and type', () => {
  const { spec } = prepared(service({})) as KubeObject<Record<string, unknown>>
  assert.deepEqual(spec, {
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    type: 'ClusterIP',
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
  })
})

test('probes get their times, and a secret its base64 data', () => {
  const probed = prepared(pod({ containers: [{ ...container, readinessProbe: { httpGet: { port: 80 } } }] }))
  const { containers } = probed.spec as { containers: { readinessProbe: unknown }[] }
  assert.deepEqual(containers[0]?.readinessProbe, {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  const secret = prepared({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { a: 'x' } }) as KubeObject & {
    data?: object
  }
  assert.deepEqual(secret.data, { a: 'eA==' })
})

const good: readonly object[] = [
  pod({}),
  pod({ containers: [{ ...container, resources: { limits: { cpu: 1, memory: '1Gi' } } }] }),
  pod({
    containers: [
      {
        ...container,
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      },
    ],
  }),
  service({ clusterIP: 'None', ports: undefined }),
  service({ type: 'ExternalName', externalName: 'a.test', ports: undefined }),
  deployment({}),
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, creationTimestamp: null }, data: { 'a.b': 'c' } },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'system:a:b' }, rules: [] },
]
for (const object of good) {
  test(`valid: ${JSON.stringify(object).slice(0, 120)}`, () => assert.deepEqual(faults(object), []))
}

const bad: readonly (readonly [object, RegExp, object?])[] = [
  [{ ...service({}), metadata: { name: '1a' } }, /^metadata\.name: Invalid value: "1a": a DNS-1035 label/],
  [{ ...pod({}), metadata: { name: 'A' } }, /^metadata\.name: Invalid value: "A": a lowercase RFC 1123 subdomain/],
  [pod({ containers: [] }), /^spec\.containers: Required value$/],
  [pod({ containers: [container, container] }), /^spec\.containers\[1\]\.name: Duplicate value: "c"$/],
  [pod({ containers: [{ name: 'c' }] }), /^spec\.containers\[0\]\.image: Required value$/],
  [pod({ restartPolicy: 'Often' }), /^spec\.restartPolicy: Unsupported value: "Often"/],
  [
    pod({ containers: [{ ...container, ports: [{ containerPort: 70000 }] }] }),
    /^spec\.containers\[0\]\.ports\[0\]\.containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive$/,
  ],
  [
    pod({ containers: [{ ...container, volumeMounts: [{ name: 'x', mountPath: '/x' }] }] }),
    /volumeMounts\[0\]\.name: Not found: "x"$/,
  ],
  [
    pod({ containers: [{ ...container, readinessProbe: {} }] }),
    /readinessProbe: Required value: must specify a handler type$/,
  ],
  [
    pod({ containers: [{ ...container, command: 'sleep' }] }),
    /^spec\.containers\[0\]\.command: .* must be of type array: "string"$/,
  ],
  [pod({ nodeSelector: { a: 'c' } }), /pod updates may not change fields other than/, pod({})],
  [service({ ports: [] }), /^spec\.ports: Required value$/],
  [service({ ports: [{ port: 80 }, { port: 81 }] }), /^spec\.ports\[0\]\.name: Required value$/m],
  [
    service({ clusterIP: '10.0.0.2' }),
    /^spec\.clusterIPs\[0\]: Invalid value: "10\.0\.0\.2": field is immutable$/,
    service({ clusterIP: '10.0.0.1' }),
  ],
  [
    deployment({ selector: { matchLabels: { app: 'x' } } }),
    /^spec\.template\.metadata\.labels: .*`selector` does not match template `labels`$/,
  ],
  [deployment({ selector: {} }), /empty selector is invalid/],
  [deployment({ replicas: -1 }), /^spec\.replicas: Invalid value: -1: must be greater than or equal to 0$/],
  [
    deployment({ template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } }),
    /restartPolicy: Unsupported value: "Never": supported values: "Always"$/,
  ],
]
for (const [object, wanted, old] of bad) {
  test(`invalid: ${wanted.source}`, () => assert.match(faults(object, old).join('\n'), wanted))
}

test('an event is the same object in both of its groups', () => {
  const { toStorage, fromStorage } = kindOf('events.k8s.io/v1', 'Event')
  const event = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata,
    regarding: { kind: 'Pod', name: 'p' },
    note: 'text',
    reportingController: 'x',
  } as KubeObject
  const stored = toStorage?.(event) as unknown as Record<string, unknown>
  assert.deepEqual(stored.involvedObject, { kind: 'Pod', name: 'p' })
  assert.equal(stored.message, 'text')
  assert.deepEqual(fromStorage?.(stored as unknown as KubeObject), event)
})
