import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRunningPod, namespaceNamed } from '../../test/support/cluster-objects.ts'
import { startDiscovery } from '../../test/support/discovery.ts'
import { startTestApi } from '../../test/support/embedded-api.ts'
import { observeXds } from '../../test/support/xds-observer.ts'
import { resources } from '../api/index.ts'

test('one namespace alone is read: its pods and policies, and of the others nothing', { timeout: 60_000 }, async () => {
  await using api = await startTestApi()
  const stateDir = mkdtempSync(join(tmpdir(), 'lateen-watched-'))
  for (const name of ['istio-system', 'one', 'other']) {
    await api.client.create(resources.namespaces, namespaceNamed(name, { 'istio.io/dataplane-mode': 'ambient' }))
  }
  for (const [namespace, ip] of [
    ['one', '10.0.0.1'],
    ['other', '10.0.0.2'],
  ] as const) {
    await createRunningPod(api.client, { namespace, name: 'pod' }, { ip, account: 'web' })
    await api.client.create(resources.authorizationPolicies, {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { namespace, name: 'policy' },
      spec: { action: 'DENY', rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
    })
  }
  {
    await using discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir,
      flags: { grpcAddr: '127.0.0.1:0' },
      env: { ISTIO_WATCH_NAMESPACE: 'one' },
    })
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
    await proxy.until(() => proxy.held.size >= 2)
    assert.deepEqual([...proxy.held.keys()].sort(), ['Kubernetes//Pod/one/pod', 'one/policy'])
  }
  rmSync(stateDir, { recursive: true })
})
