import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defaultMeshConfig, mergeMeshConfig, readMeshConfig, readTrustDomain } from './mesh-config.ts'

const defaults = defaultMeshConfig('istio-system')
const read = (yaml: string) => readMeshConfig(yaml, defaults, 'mesh.yaml')

describe('mesh config', () => {
  test('is the defaults where nothing is written', () => {
    assert.deepEqual(read(''), { kind: 'read', config: defaults })
    assert.equal(defaults.discoveryAddress, 'istiod.istio-system.svc:15012')
  })

  test('is what is written over the defaults', () => {
    const reading = read(
      'trustDomain: td.example\ntrustDomainAliases: [old]\ndefaultConfig:\n  discoveryAddress: cp:15012\n',
    )
    assert.equal(reading.kind, 'read')
    if (reading.kind !== 'read') return
    assert.equal(reading.config.trustDomain, 'td.example')
    assert.deepEqual(reading.config.trustDomainAliases, ['old'])
    assert.equal(reading.config.rootNamespace, 'istio-system')
    assert.equal(reading.config.discoveryAddress, 'cp:15012')
  })

  for (const [yaml, problem] of [
    ['trustDomain: [1', /mesh\.yaml: /],
    ['- a', /mesh\.yaml: expected a mapping/],
    ['trustDomain: 1', /trustDomain: expected text/],
    ['trustDomainAliases: a', /trustDomainAliases: expected a list/],
    ['defaultConfig: x', /defaultConfig: expected a mapping/],
  ] as const) {
    test(`is refused with a reason: ${yaml}`, () => {
      const reading = read(yaml)
      assert.equal(reading.kind, 'invalid')
      assert.match(reading.kind === 'invalid' ? reading.problem : '', problem)
    })
  }

  for (const [yaml, problem] of [
    ['discoverySelectors: [{matchExpressions: [{key: a, operator: Like}]}]', /discoverySelectors: expected/],
    [
      'discoverySelectors: [{matchExpressions: [{key: a, operator: In, values: prod}]}]',
      /discoverySelectors: expected/,
    ],
    ['configSources: [{address: "http://x"}]', /configSources: expected/],
    ['configSources: [{address: "k8s://other"}]', /configSources: expected/],
    ['configSources: [{address: "xds://a:1", tlsSettings: {mode: MUTUAL}}]', /configSources\[0\]\.tlsSettings\.mode/],
    ['configSources: [{address: "xds://a:1", tlsSettings: {caCrl: /x}}]', /tlsSettings\.caCrl: is not supported/],
    [
      'configSources: [{address: "xds://a:1", tlsSettings: {subjectAltNames: [a, b]}}]',
      /subjectAltNames: expected one/,
    ],
  ] as const) {
    test(`is refused where it would be misread: ${yaml}`, () => {
      const reading = read(yaml)
      assert.match(reading.kind === 'invalid' ? reading.problem : '', problem)
    })
  }

  test('names sources with how to reach them', () => {
    const yaml = 'configSources: [{address: "xds://a:1", tlsSettings: {mode: SIMPLE, credentialName: roots, sni: b}}]'
    const reading = read(yaml)
    assert.deepEqual(reading.kind === 'read' && reading.config.configSources, [
      { address: 'xds://a:1', tls: { isPlaintext: false, credentialName: 'roots', sni: 'b' } },
    ])
  })

  test('of another cluster tells its trust domain', () => {
    assert.equal(readTrustDomain('trustDomain: x.example'), 'x.example')
    assert.equal(readTrustDomain(''), 'cluster.local')
    assert.equal(readTrustDomain('trustDomain: ['), undefined)
    assert.equal(readTrustDomain(undefined), undefined)
  })

  test('is layers, of which some fields merge', () => {
    const reading = mergeMeshConfig(
      [
        {
          where: 'shared',
          yaml: `
trustDomain: shared.example
trustDomainAliases: [b]
defaultConfig: {discoveryAddress: "shared:1", proxyMetadata: {A: "1", B: "1"}}
extensionProviders: [{name: x, prometheus: {}}, {name: y, prometheus: {}}]
`,
        },
        {
          where: 'own',
          yaml: `
trustDomain: own.example
trustDomainAliases: [a, b]
defaultConfig: {proxyMetadata: {B: "2"}}
extensionProviders: [{name: x, stackdriver: {}}]
`,
        },
      ],
      defaults,
    )
    assert.equal(reading.kind, 'read')
    if (reading.kind !== 'read') return
    const { trustDomain, trustDomainAliases, discoveryAddress, fields } = reading.config
    assert.deepEqual([trustDomain, trustDomainAliases, discoveryAddress], ['own.example', ['a', 'b'], 'shared:1'])
    assert.deepEqual(fields.defaultConfig, { discoveryAddress: 'shared:1', proxyMetadata: { A: '1', B: '2' } })
    assert.deepEqual(fields.extensionProviders, [
      { name: 'x', stackdriver: {} },
      { name: 'y', prometheus: {} },
    ])
  })
})
