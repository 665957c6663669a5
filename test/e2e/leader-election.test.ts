// Leader election against the embedded API.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { type EmbeddedApi, startEmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { createKubeClient, type KubeClient, runLeaderElection } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'

describe('leader election', { timeout: 30_000 }, () => {
  let dir: string
  let api: EmbeddedApi
  let client: KubeClient
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'lateen-leader-'))
    api = await startEmbeddedApi({
      stateDir: dir,
      listen: [{ host: '127.0.0.1', port: 0 }],
      serviceCidr: '10.96.0.0/16',
      onError: (error) => assert.fail(String(error)),
    })
    client = await createKubeClient({ kubeconfig: api.kubeconfig })
  })
  after(async () => {
    await client.close()
    await api[Symbol.asyncDispose]()
    await rm(dir, { recursive: true })
  })

  function contend(name: string, identity: string, leaseMs = 1_000) {
    const stop = new AbortController()
    const leading = Promise.withResolvers<AbortSignal>()
    let isLeading = false
    const ended = runLeaderElection(
      {
        client,
        namespace: 'default',
        name,
        identity,
        times: { leaseMs, renewDeadlineMs: leaseMs * 0.6, retryMs: 100 },
        log: silentLogging().scope('test'),
        async lead(signal) {
          isLeading = true
          leading.resolve(signal)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
          isLeading = false
        },
      },
      stop.signal,
    )
    return {
      leading: leading.promise,
      isLeading: () => isLeading,
      async stop() {
        stop.abort()
        await ended
      },
    }
  }

  test('has one leader; when it stops, another takes over without waiting for the lease to expire', async () => {
    // A lease so long that waiting for its end would outlast the test.
    const leaseMs = 600_000
    const one = contend('handover', 'one', leaseMs)
    await one.leading
    const two = contend('handover', 'two', leaseMs)
    assert.equal(two.isLeading(), false)
    await one.stop()
    await two.leading
    assert.equal(one.isLeading(), false)
    await two.stop()
  })

  test('a lease that is not renewed passes on, and its holder steps down when it sees that', async () => {
    const one = contend('steal', 'one')
    const signal = await one.leading
    const lease = await client.get<KubeObject<Record<string, unknown>>>(resources.leases, {
      namespace: 'default',
      name: 'steal',
    })
    const body = { spec: { holderIdentity: 'other', renewTime: lease?.spec?.renewTime, leaseDurationSeconds: 1 } }
    await client.patch(resources.leases, { namespace: 'default', name: 'steal' }, { kind: 'merge', body })
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const two = contend('steal', 'two')
    await Promise.race([two.leading, one.leading])
    await Promise.all([one.stop(), two.stop()])
  })
})
