import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { istioResources, type KubeObject, resources } from '../api/index.ts'
import { mcp } from '../proto/control-plane/index.ts'
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
    virtualServices: object('VirtualService', 'networking.istio.io', {
      hosts: ['a'],
      http: [
        {
          match: [
            { uri: { prefix: '/x' }, headers: { h: { exact: 'v' } }, withoutHeaders: { n: { regex: '.' } }, port: 8 },
          ],
          route: [{ destination: { host: 'a', subset: 'v1', port: { number: 80 } }, weight: 90 }],
          timeout: '1.500s',
          retries: { attempts: 2, perTryTimeout: '0.100s', retryRemoteLocalities: false },
          fault: { delay: { percentage: { value: 0.5 }, fixedDelay: '3s' }, abort: { httpStatus: 503 } },
          mirrorPercentage: { value: 100 },
          headers: { request: { set: { a: 'b' }, remove: ['c'] } },
        },
      ],
      tls: [{ match: [{ sniHosts: ['s'], port: 443 }], route: [{ destination: { host: 'b' } }] }],
    }),
    destinationRules: object('DestinationRule', 'networking.istio.io', {
      host: 'a',
      trafficPolicy: {
        loadBalancer: { consistentHash: { httpCookie: { name: 'c', ttl: '0s' }, ringHash: { minimumRingSize: 1024 } } },
        connectionPool: { http: { http2MaxRequests: 7, h2UpgradePolicy: 'UPGRADE' }, tcp: { connectTimeout: '30s' } },
        outlierDetection: { consecutive5xxErrors: 0, baseEjectionTime: '180s', splitExternalLocalOriginErrors: true },
        tls: { mode: 'ISTIO_MUTUAL', insecureSkipVerify: true },
        portLevelSettings: [{ port: { number: 8 }, tls: { mode: 'SIMPLE' } }],
      },
      subsets: [{ name: 'v1', labels: { version: 'v1' } }],
    }),
    istioGateways: object('Gateway', 'networking.istio.io', {
      selector: { istio: 'ingress' },
      servers: [
        {
          port: { number: 443, name: 'https', protocol: 'HTTPS' },
          hosts: ['*'],
          tls: { mode: 'MUTUAL', minProtocolVersion: 'TLSV1_2' },
        },
      ],
    }),
    sidecars: object('Sidecar', 'networking.istio.io', {
      egress: [{ hosts: ['./*'], captureMode: 'NONE', port: { number: 9, protocol: 'HTTP', name: 'e' } }],
      outboundTrafficPolicy: { mode: 'ALLOW_ANY' },
    }),
    workloadGroups: object('WorkloadGroup', 'networking.istio.io', {
      metadata: { labels: { app: 'a' } },
      template: { serviceAccount: 'sa', ports: { http: 80 } },
      probe: { periodSeconds: 5, httpGet: { path: '/', port: 80 } },
    }),
    envoyFilters: object('EnvoyFilter', 'networking.istio.io', {
      configPatches: [
        {
          applyTo: 'HTTP_FILTER',
          match: { context: 'SIDECAR_INBOUND', listener: { portNumber: 80, filterChain: { filter: { name: 'f' } } } },
          patch: {
            operation: 'INSERT_BEFORE',
            value: { name: 'x', typed_config: { '@type': 't', n: 1.5, l: [true] } },
          },
        },
      ],
      priority: -1,
    }),
    proxyConfigs: object('ProxyConfig', 'networking.istio.io', { concurrency: 0, image: { imageType: 'debug' } }),
    requestAuthentications: object('RequestAuthentication', 'security.istio.io', {
      targetRefs: [{ kind: 'Service', name: 's' }],
      jwtRules: [{ issuer: 'i', jwksUri: 'https://i', fromHeaders: [{ name: 'a', prefix: 'b' }], timeout: '5s' }],
    }),
    telemetries: object('Telemetry', 'telemetry.istio.io', {
      tracing: [{ randomSamplingPercentage: 0, customTags: { t: { literal: { value: 'v' } } } }],
      metrics: [
        {
          overrides: [
            { match: { metric: 'REQUEST_COUNT', mode: 'CLIENT' }, tagOverrides: { x: { operation: 'REMOVE' } } },
          ],
        },
      ],
      accessLogging: [{ filter: { expression: 'true' }, disabled: false }],
    }),
    wasmPlugins: object('WasmPlugin', 'extensions.istio.io', {
      url: 'oci://x',
      imagePullPolicy: 'Always',
      pluginConfig: { a: [1, { b: null }] },
      priority: 10,
      match: [{ mode: 'CLIENT', ports: [{ number: 80 }] }],
    }),
    trafficExtensions: object('TrafficExtension', 'extensions.istio.io', { lua: { inlineCode: 'x' }, phase: 'AUTHN' }),
    gateways: object('Gateway', 'gateway.networking.k8s.io', {
      gatewayClassName: 'x',
      listeners: [{ name: 'l', port: 80 }],
    }),
  } as const
  for (const [kind, sample] of Object.entries(samples)) {
    test(`is the same after a journey: ${kind}`, () => {
      const resource = { ...resources, ...istioResources }[kind as keyof typeof samples]
      const apiVersion = `${resource.group}/${resource.version}`
      assert.deepEqual(decodeIstioResource(resource, encodeIstioResource(sample)), { ...sample, apiVersion })
    })
  }

  test('has a message of its own, whatever Istio kind it is', () => {
    for (const [kind, sample] of Object.entries(samples)) {
      const { body } = fromBinary(mcp.ResourceSchema, encodeIstioResource(sample))
      assert.equal(/google\.protobuf\.Struct$/.test(body?.typeUrl ?? ''), kind === 'gateways', kind)
    }
  })

  test('has its durations as people write them', () => {
    const written = object('VirtualService', 'networking.istio.io', { http: [{ timeout: '1m30s', name: '1m30s' }] })
    const { spec } = decodeIstioResource(istioResources.virtualServices, encodeIstioResource(written))
    assert.deepEqual(spec, { http: [{ timeout: '90s', name: '1m30s' }] })
  })

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
