// A node proxy gets certificates for pods of its own node in its own cluster, whatever name the cluster is called by.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { logLines } from '../../test/support/log-lines.ts'
import { createPodIndex, type PodIndex } from '../ca/index.ts'
import { silentLogging } from '../observability/index.ts'
import { nodeAuthorizers } from './node-authorizers.ts'

/** A node proxy, and one workload beside it. */
const podsWith = (workload: string): PodIndex =>
  createPodIndex([
    { name: 'z', namespace: 'istio-system', uid: 'u', serviceAccount: 'ztunnel', node: 'n', phase: 'Running' },
    { name: 'w', namespace: 'app', uid: 'v', serviceAccount: workload, node: 'n', phase: 'Running' },
  ])
const clusters: ReadonlyMap<string, PodIndex> = new Map([
  ['here', podsWith('local')],
  ['there', podsWith('far')],
])
const caller = { namespace: 'istio-system', serviceAccount: 'ztunnel', podName: 'z', podUid: 'u' }
const identityOf = (workload: string): string => `spiffe://td/ns/app/sa/${workload}`

function authorizers(trustedNodeAccounts: string, log = silentLogging().scope('test')) {
  const settings = { trustedNodeAccounts, clusterAliases: new Map([['formerly', 'there']]) }
  const podsOf = (id: string) => clusters.get(id === '' ? 'here' : id)
  return nodeAuthorizers(settings, podsOf, () => ['td'], log)
}

describe('node proxies', () => {
  const authorizerOf = authorizers('istio-system/ztunnel')

  for (const [cluster, own, other] of [
    ['', 'local', 'far'],
    ['here', 'local', 'far'],
    ['there', 'far', 'local'],
    ['formerly', 'far', 'local'],
  ] as const) {
    test(`of cluster "${cluster}" may have what runs on their node there, and nothing of other clusters`, () => {
      const authorize = authorizerOf(cluster)
      assert.ok(authorize)
      authorize({ caller, requested: identityOf(own) })
      assert.throws(() => authorize({ caller, requested: identityOf(other) }), {
        code: 'IMPERSONATION_REFUSED',
        message: `no instances of app/${other} found on node n`,
      })
    })
  }

  test('of clusters that are not known are not looked at', () => {
    assert.equal(authorizerOf('elsewhere'), undefined)
  })

  test('are nobody when no account is trusted, or none that can be read', async () => {
    const { logging, until } = logLines()
    for (const trusted of ['', ',', 'ztunnel', '/ztunnel']) {
      const none = authorizers(trusted, logging.scope('test'))
      for (const cluster of ['', 'here', 'there']) assert.equal(none(cluster), undefined, trusted)
    }
    await until(/warn.*trusted node account 'ztunnel' ignored: expected namespace\/serviceaccount/)
  })
})
