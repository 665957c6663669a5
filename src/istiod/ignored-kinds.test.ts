import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { namespaceNamed } from '../../test/support/cluster-objects.ts'
import { startDiscovery } from '../../test/support/discovery.ts'
import { startTestApi } from '../../test/support/embedded-api.ts'
import { type KubeObject, resources } from '../api/index.ts'
import { ignoredKinds, nameOf } from './ignored-kinds.ts'

describe('kinds that are not to be read', () => {
  const kinds = [resources.serviceEntries, resources.authorizationPolicies, resources.gateways]
  for (const [ignore, include, expected] of [
    ['', '', []],
    ['*.istio.io', '', ['serviceentries.networking.istio.io', 'authorizationpolicies.security.istio.io']],
    ['*.istio.io', '*.security.istio.io', ['serviceentries.networking.istio.io']],
    ['gateways.gateway.networking.k8s.io', '', ['gateways.gateway.networking.k8s.io']],
    ['gatewaysXgateway.networking.k8s.io', '', []],
    ['serviceentries', '', []],
    ['*.networking.*', 'g*', ['serviceentries.networking.istio.io']],
    ['', '*', []],
  ] as const) {
    test(`ignored "${ignore}", included "${include}"`, () => {
      const choice = { ignore: ignore.split(',').filter(Boolean), include: include.split(',').filter(Boolean) }
      assert.deepEqual(ignoredKinds(kinds, choice).map(nameOf), expected)
    })
  }
})

test('an ignored kind has no objects, is not asked for, and is named in the log', { timeout: 60_000 }, async () => {
  await using api = await startTestApi()
  const stateDir = mkdtempSync(join(tmpdir(), 'lateen-ignored-'))
  await api.client.create(resources.namespaces, namespaceNamed('istio-system'))
  const metadata = { namespace: 'istio-system', name: 'x' }
  await api.client.create<KubeObject>(resources.serviceEntries, {
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata,
    spec: { hosts: ['x.example'], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'NONE' },
  })
  await api.client.create<KubeObject>(resources.authorizationPolicies, {
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata,
    spec: {},
  })
  {
    await using discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir,
      env: { PILOT_IGNORE_RESOURCES: '*.istio.io', PILOT_INCLUDE_RESOURCES: 'authorizationpolicies.security.istio.io' },
    })
    const read = (await discovery.page('configz')) as KubeObject[]
    assert.deepEqual(
      read.map(({ kind }) => kind),
      ['AuthorizationPolicy'],
    )
    assert.match(
      discovery.log.lines.find((line) => line.includes('PILOT_IGNORE_RESOURCES')) ?? '',
      /serviceentries\.networking\.istio\.io/,
    )
  }
  rmSync(stateDir, { recursive: true })
})
