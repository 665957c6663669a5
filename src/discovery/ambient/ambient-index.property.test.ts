// Random objects under random changes: the index is the one computed from nothing, tells only what differs, and never lists
// a policy that is not sent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import type { KubeObject } from '../../api/index.ts'
import { workload } from '../../proto/index.ts'
import { createTestMesh, make, type TestMesh } from './testing.ts'

const namespace = fc.constantFrom('istio-system', 'ns1', 'ns2')
const name = fc.constantFrom('x', 'y')
const path = fc.tuple(namespace, name).map(([ns, one]) => `${ns}/${one}`)
const app = fc.constantFrom('a', 'b')
const labels = fc.record({ app }, { requiredKeys: [] })
const address = fc.nat(3).map((last) => `10.0.0.${last}`)
const mode = fc.constantFrom('STRICT', 'PERMISSIVE', 'DISABLE', 'UNSET')
const useWaypoint = fc.record(
  {
    'istio.io/use-waypoint': fc.constantFrom('x', 'y', 'none'),
    'topology.istio.io/network': fc.constantFrom('n1', 'n2'),
  },
  { requiredKeys: [] },
)
const created = fc.record(
  { creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z') },
  { requiredKeys: [] },
)
const selector = fc.record({ selector: fc.record({ matchLabels: labels }) }, { requiredKeys: [] })
const sliceOf = (where: string, service: string, pod: string): KubeObject =>
  Object.assign(
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 's', namespace: where, labels: { 'kubernetes.io/service-name': service } },
    },
    {
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [
        { addresses: ['10.5.0.1'] },
        { addresses: ['10.5.0.2'], targetRef: { kind: 'Pod', name: pod, uid: `${where}/${pod}` } },
      ],
    },
  )

const anyObject: fc.Arbitrary<KubeObject> = fc.oneof(
  fc.tuple(namespace, useWaypoint).map(([ns, marks]) => make.namespace(ns, marks)),
  fc.constantFrom('z1', 'z2').map((zone) => make.node('node', { 'topology.kubernetes.io/zone': zone })),
  fc.tuple(path, address, labels, useWaypoint).map(([at, ip, own, marks]) => make.pod(at, ip, { ...own, ...marks })),
  fc
    .tuple(path, address, labels, useWaypoint)
    .map(([at, ip, own, marks]) => make.service(at, ip, own, { labels: marks })),
  fc.tuple(namespace, name, name).map(([ns, service, pod]) => sliceOf(ns, service, pod)),
  fc
    .tuple(path, fc.boolean(), fc.constantFrom('service', 'workload', 'all'))
    .map(([at, ready, traffic]) => make.waypoint(at, { ready, for: traffic })),
  fc
    .tuple(
      path,
      fc.subarray(['one.com', 'two.com', 'x.ns1.svc.cluster.local']),
      fc.subarray(['10.6.0.1', 'unix:///x', 'host']),
      labels,
      created,
    )
    .map(([at, hosts, endpoints, own, metadata]) =>
      make.serviceEntry(
        at,
        endpoints.length > 0
          ? { hosts, endpoints: endpoints.map((where) => ({ address: where })) }
          : { hosts, resolution: 'DNS', ...(own.app === undefined ? {} : { workloadSelector: { labels: own } }) },
        metadata,
      ),
    ),
  fc.tuple(path, address, labels).map(([at, ip, own]) => make.workloadEntry(at, { address: ip, labels: own })),
  fc
    .tuple(path, selector, fc.constantFrom('ALLOW', 'DENY', 'AUDIT'))
    .map(([at, own, action]) => make.policy(at, { ...own, action, rules: [{}] })),
  fc
    .tuple(
      path,
      selector,
      mode,
      fc.dictionary(
        fc.constantFrom('9000', '9001'),
        mode.map((one) => ({ mode: one })),
      ),
    )
    .map(([at, own, base, portLevelMtls]) => make.peer(at, { ...own, mtls: { mode: base }, portLevelMtls })),
)

const nameOf = ({ kind, metadata }: KubeObject): string => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`

function contentOf({ index }: TestMesh): string[] {
  return [
    ...[...index.addresses.list(), ...index.authorizations.list()].map(
      ({ name: key, version, aliases }) => `${key} ${version} ${aliases}`,
    ),
    ...[...index.conditions.entries()].map(([key, { conditions }]) => `${key} ${JSON.stringify(conditions)}`),
  ].sort()
}

test('any objects under any changes: incremental and from nothing agree', () => {
  const wave = fc.array(fc.tuple(anyObject, fc.integer({ min: 0, max: 3 })), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(fc.array(wave, { minLength: 1, maxLength: 6 }), fc.boolean(), (waves, autoAllowWaypoints) => {
      const mesh = createTestMesh({ autoAllowWaypoints })
      const objects = new Map<string, KubeObject>()
      const heard = new Map<string, string>()
      mesh.index.addresses.subscribe((changes) => {
        for (const { name: key, old, new: next } of changes) {
          if (old !== undefined && next !== undefined)
            assert.notEqual(`${old.version} ${old.aliases}`, `${next.version} ${next.aliases}`)
          if (next === undefined) heard.delete(key)
          else heard.set(key, next.version)
        }
      })
      for (const changes of waves) {
        mesh.graph.transaction(() => {
          for (const [object, kind] of changes) {
            const key = nameOf(object)
            if (kind === 0) {
              objects.delete(key)
              mesh.remove(key)
            } else {
              objects.set(key, object)
              mesh.apply(object)
            }
          }
        })
        const fresh = createTestMesh({ autoAllowWaypoints })
        fresh.apply(...objects.values())
        assert.deepEqual(contentOf(mesh), contentOf(fresh))
        assert.deepEqual(
          [...heard].sort(),
          [...mesh.index.addresses.list()].map(({ name: key, version }) => [key, version]).sort(),
        )
        for (const { name: key, body } of mesh.index.workloads.list()) {
          for (const policy of fromBinary(workload.WorkloadSchema, body).authorizationPolicies) {
            assert.ok(mesh.index.authorizations.get(policy), `${key} lists ${policy}, which is not sent`)
          }
        }
        const failures = mesh.reports.filter(({ kind }) => kind !== 'duplicate-key')
        assert.deepEqual(failures, [])
      }
    }),
    { numRuns: 150 },
  )
})
