// Leader election against the embedded API.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { type KubeClient, runLeaderElection } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'

describe('leader election', { timeout: 30_000 }, () => {
  let api: TestApi
  let client: KubeClient
  before(async () => {
    api = await startTestApi()
    client = api.client
  })
  after(() => api?.[Symbol.asyncDispose]())

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
