import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import { meshConfig } from '../proto/control-plane/index.ts'
import { defaultMeshConfig, readMeshConfig } from './mesh-config.ts'
import { encodeMeshConfig } from './mesh-config-export.ts'

const encoded = (yaml: string) => {
  const reading = readMeshConfig(yaml, defaultMeshConfig('istio-system'), 'mesh')
  assert.equal(reading.kind, 'read')
  return encodeMeshConfig(reading.kind === 'read' ? reading.config : defaultMeshConfig(''))
}
const decoded = (yaml: string) => {
  const { body, bodyType } = encoded(yaml)
  assert.equal(bodyType, 'type.googleapis.com/istio.mesh.v1alpha1.MeshConfig')
  return toJson(meshConfig.MeshConfigSchema, fromBinary(meshConfig.MeshConfigSchema, body)) as Record<string, unknown>
}

describe('mesh config that is passed on', () => {
  test('says what holds where nothing is written', () => {
    const config = decoded('')
    assert.equal(config.trustDomain, 'cluster.local')
    assert.equal(config.rootNamespace, 'istio-system')
    assert.equal(config.proxyListenPort, 15001)
    assert.deepEqual(config.outboundTrafficPolicy, { mode: 'ALLOW_ANY' })
    assert.equal((config.defaultConfig as Record<string, unknown>).discoveryAddress, 'istiod.istio-system.svc:15012')
  })

  test('has what is written over it, providers by name', () => {
    const config = decoded(`
trustDomain: td.example
connectTimeout: 1m
meshMTLS: {minProtocolVersion: TLSV1_3}
discoverySelectors: [{matchLabels: {a: b}}]
defaultConfig: {proxyMetadata: {A: "1"}, statusPort: 1}
extensionProviders: [{name: envoy, envoyFileAccessLog: {path: /x}}, {name: own, opentelemetry: {service: s, port: 1}}]
`)
    assert.equal(config.connectTimeout, '60s')
    assert.deepEqual(config.meshMTLS, { minProtocolVersion: 'TLSV1_3' })
    const providers = config.extensionProviders as { name: string; envoyFileAccessLog?: { path: string } }[]
    assert.deepEqual(
      providers.map(({ name }) => name),
      ['prometheus', 'stackdriver', 'envoy', 'own'],
    )
    assert.equal(providers[2]?.envoyFileAccessLog?.path, '/x')
    const { proxyMetadata, statusPort, binaryPath } = config.defaultConfig as Record<string, unknown>
    assert.deepEqual([proxyMetadata, statusPort, binaryPath], [{ A: '1' }, 1, '/usr/local/bin/envoy'])
  })

  test('has the version of its content', () => {
    assert.equal(encoded('').version, encoded('').version)
    assert.notEqual(encoded('').version, encoded('trustDomain: x').version)
  })
})
