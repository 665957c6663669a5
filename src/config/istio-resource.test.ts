import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, resources } from '../api/index.ts'
import { decodeIstioResource, encodeIstioResource } from './istio-resource.ts'

const object = (kind: string, group: string, spec: object): KubeObject => ({
  apiVersion: `${group}/v1`,
  kind,
  metadata: {
    name: 'a',
    namespace: 'ns',
    resourceVersion: '7',
    creationTimestamp: '2026-01-02T03:04:05.000Z',
    labels: { l: '1' },
  },
  spec,
})

describe('a configuration object', () => {
  const samples = {
    serviceEntries: object('ServiceEntry', 'networking.istio.io', {
      hosts: ['a.example'],
      ports: [{ number: 80, name: 'http', protocol: 'HTTP', targetPort: 8080 }],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      endpoints: [{ address: '10.0.0.1', labels: { app: 'a' }, ports: { http: 81 } }],
      workloadSelector: { labels: { app: 'a' } },
    }),
    workloadEntries: object('WorkloadEntry', 'networking.istio.io', {
      address: '10.0.0.1',
      serviceAccount: 'a',
      weight: 2,
    }),
    authorizationPolicies: object('AuthorizationPolicy', 'security.istio.io', {
      selector: { matchLabels: { app: 'a' } },
      action: 'DENY',
      rules: [
        {
          from: [{ source: { notNamespaces: ['x'] } }],
          to: [{ operation: { ports: ['80'] } }],
          when: [{ key: 'k', values: ['v'] }],
        },
        {},
      ],
    }),
    peerAuthentications: object('PeerAuthentication', 'security.istio.io', {
      mtls: { mode: 'STRICT' },
      portLevelMtls: { 80: { mode: 'DISABLE' } },
    }),
    gateways: object('Gateway', 'gateway.networking.k8s.io', {
      gatewayClassName: 'x',
      listeners: [{ name: 'l', port: 80 }],
    }),
  } as const
  for (const [kind, sample] of Object.entries(samples)) {
    test(`is the same after a journey: ${kind}`, () => {
      const resource = resources[kind as keyof typeof samples]
      assert.deepEqual(decodeIstioResource(resource, encodeIstioResource(sample)), sample)
    })
  }

  test('that does not fit its message arrives as it was written', () => {
    const broken = object('AuthorizationPolicy', 'security.istio.io', { action: 'FORBID', rules: 'all' })
    assert.deepEqual(decodeIstioResource(resources.authorizationPolicies, encodeIstioResource(broken)), broken)
  })

  test('of another type is not taken', () => {
    const entry = encodeIstioResource(samples.workloadEntries)
    assert.throws(
      () => decodeIstioResource(resources.serviceEntries, entry),
      /a body of type .*WorkloadEntry is not known/,
    )
    assert.throws(
      () => decodeIstioResource(resources.serviceEntries, new Uint8Array()),
      /expected a resource with a name/,
    )
  })
})
