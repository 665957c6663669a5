import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApi, type TestApi } from '../../../test/support/embedded-api.ts'
import { type KubeObject, resources, type WorkloadEntry } from '../../api/index.ts'
import type { Informer } from '../../kube/index.ts'
import { createMetricsRegistry, renderMetrics, silentLogging } from '../../observability/index.ts'
import type { Attendance } from '../../xds/index.ts'
import type { RegisteringProxy, WorkloadGroup } from './entry.ts'
import { createRegistrationMetrics } from './metrics.ts'
import { createWorkloadRegistration, type RegistrationOptions, sweepPauseMs } from './registration.ts'

const identity = (namespace: string, account: string) => `spiffe://cluster.local/ns/${namespace}/sa/${account}`

const proxyOf = (ip: string, more: Partial<RegisteringProxy> = {}): RegisteringProxy => ({
  proxyId: `vm-${ip}`,
  namespace: 'vms',
  ips: [ip],
  locality: '',
  metadata: { AUTO_REGISTER_GROUP: 'wg' },
  identities: [identity('vms', 'vm')],
  ...more,
})

const group = (): WorkloadGroup => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'WorkloadGroup',
  metadata: { namespace: 'vms', name: 'wg' },
  spec: { template: { serviceAccount: 'vm', labels: { app: 'a' } }, probe: { periodSeconds: 5, httpGet: { port: 1 } } },
})

describe('workloads that register themselves', { timeout: 60_000 }, () => {
  let api: TestApi
  let groups: Informer<WorkloadGroup>
  let entries: Informer<WorkloadEntry>
  before(async () => {
    api = await startTestApi()
    await api.client.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'vms' } })
    groups = api.client.informer<WorkloadGroup>(resources.workloadGroups)
    entries = api.client.informer<WorkloadEntry>(resources.workloadEntries)
    await Promise.all([groups.synced, entries.synced])
    await createGroup()
  })
  after(async () => {
    await groups[Symbol.asyncDispose]()
    await entries[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  })

  async function createGroup(): Promise<void> {
    const known = new Promise<void>((resolve) => {
      const end = groups.subscribe((changes) => {
        if (changes.some(({ kind }) => kind === 'added')) {
          resolve()
          queueMicrotask(() => end())
        }
      })
    })
    await api.client.create(resources.workloadGroups, group())
    await known
  }

  const metricsRegistry = createMetricsRegistry()
  const metrics = createRegistrationMetrics(metricsRegistry)
  const open = (more: Partial<RegistrationOptions> = {}) =>
    createWorkloadRegistration({
      client: api.client,
      groups,
      entries,
      controller: 'istiod-1',
      graceMs: 100,
      maxConnectionAgeMs: undefined,
      validatesIdentity: true,
      registers: true,
      checksHealth: true,
      metrics,
      log: silentLogging().scope('test'),
      ...more,
    })

  const until = <R>(name: string, find: (entry: WorkloadEntry | undefined) => R | undefined): Promise<R> =>
    api.until<WorkloadEntry, R>(resources.workloadEntries, { namespace: 'vms', name }, find)
  const gone = (name: string) => until(name, (entry) => (entry === undefined ? true : undefined))
  const annotationsOf = (name: string) =>
    until(name, (entry) => (entry === undefined ? undefined : (entry.metadata.annotations ?? {})))
  const attended = async (attendance: Promise<Attendance | undefined>): Promise<Attendance> => {
    const found = await attendance
    assert.ok(found)
    return found
  }

  test('have an entry while they are connected, and for a grace period after', async () => {
    await using registration = open()
    const attendance = await attended(registration.connected(proxyOf('10.0.0.1')))
    const entry = await api.client.get<WorkloadEntry>(resources.workloadEntries, {
      namespace: 'vms',
      name: 'wg-10.0.0.1',
    })
    assert.equal(entry?.spec?.address, '10.0.0.1')
    assert.equal(entry?.metadata.annotations?.['istio.io/workloadController'], 'istiod-1')
    const disconnected = until('wg-10.0.0.1', (found) => {
      const { 'istio.io/connectedAt': connected, 'istio.io/disconnectedAt': at } = found?.metadata.annotations ?? {}
      return connected === undefined ? at : undefined
    })
    attendance.end()
    await disconnected
    await gone('wg-10.0.0.1')
    const text = await renderMetrics(metricsRegistry, 'text')
    for (const name of ['success', 'unregister', 'deletes'])
      assert.match(text, new RegExp(`auto_registration_${name}_total 1`))
  })

  test('that come back in time, here or elsewhere, keep it: only the connection that holds it ends it', async () => {
    await using first = open({ graceMs: 1_000 })
    await using second = open({ controller: 'istiod-2', graceMs: 1_000 })
    const old = await attended(first.connected(proxyOf('10.0.0.2')))
    const current = await attended(second.connected(proxyOf('10.0.0.2')))
    old.end()
    old.health({ isHealthy: false, message: 'from the past' })
    current.health({ isHealthy: true, message: '' })
    const condition = await until('wg-10.0.0.2', (entry) =>
      entry?.status?.conditions?.find(({ type }) => type === 'Healthy'),
    )
    assert.equal(condition.status, 'True')
    const annotations = await annotationsOf('wg-10.0.0.2')
    assert.equal(annotations['istio.io/workloadController'], 'istiod-2')
    assert.equal(annotations['istio.io/disconnectedAt'], undefined)
    current.end()
    const again = await attended(second.connected(proxyOf('10.0.0.2')))
    await until('wg-10.0.0.2', (entry) =>
      entry?.metadata.annotations?.['istio.io/connectedAt'] !== undefined ? true : undefined,
    )
    again.end()
    await gone('wg-10.0.0.2')
  })

  test('of one address are one entry, for which the earlier one counts again when the later one leaves', async () => {
    await using first = open({ graceMs: 0 })
    await using second = open({ controller: 'istiod-2', graceMs: 60_000 })
    const heldBy = (controller: string, connectedAt?: string) =>
      until('wg-10.0.0.8', (found) => {
        const { 'istio.io/workloadController': by, 'istio.io/connectedAt': at } = found?.metadata.annotations ?? {}
        return by === controller && at !== undefined && (connectedAt ?? at) === at ? at : undefined
      })
    const oldest = await attended(first.connected(proxyOf('10.0.0.8')))
    const since = await heldBy('istiod-1')
    const here = await attended(first.connected(proxyOf('10.0.0.8', { proxyId: 'other' })))
    const there = await attended(second.connected(proxyOf('10.0.0.8', { proxyId: 'another' })))
    await heldBy('istiod-2')
    here.end()
    there.end()
    await heldBy('istiod-1', since)
    oldest.end()
    await gone('wg-10.0.0.8')
  })

  test('of a written entry are told apart likewise', async () => {
    await using registration = open()
    const key = { namespace: 'vms', name: 'shared' }
    const written = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'WorkloadEntry',
      metadata: { ...key, annotations: { 'proxy.istio.io/health-checks-enabled': 'true' } },
      spec: { address: '10.0.0.9', serviceAccount: 'vm' },
    }
    await api.client.create(resources.workloadEntries, written)
    const proxy = proxyOf('10.0.0.9', { metadata: { WORKLOAD_ENTRY: 'shared' } })
    const earlier = await attended(registration.connected(proxy))
    const since = (await annotationsOf('shared'))['istio.io/connectedAt']
    const later = await attended(registration.connected(proxy))
    later.end()
    await until('shared', (entry) =>
      entry?.metadata.annotations?.['istio.io/connectedAt'] === since ? true : undefined,
    )
    earlier.health({ isHealthy: false, message: 'alone again' })
    await until('shared', (entry) => entry?.status?.conditions?.find(({ message }) => message === 'alone again'))
    earlier.end()
    await until('shared', (entry) => (entry?.status?.conditions?.length === 0 ? true : undefined))
    await api.client.delete(resources.workloadEntries, key)
  })

  test('say how they are, and the time is that of the change', async () => {
    await using registration = open()
    const attendance = await attended(registration.connected(proxyOf('10.0.0.3')))
    const health = (status: string) =>
      until('wg-10.0.0.3', (entry) => {
        const found = entry?.status?.conditions?.find(({ type }) => type === 'Healthy')
        return found?.status === status ? found : undefined
      })
    attendance.health({ isHealthy: false, message: 'connection refused' })
    assert.equal((await health('False')).message, 'connection refused')
    attendance.health({ isHealthy: true, message: '' })
    await health('True')
    attendance.end()
    await gone('wg-10.0.0.3')
  })

  test('that say very often how they are cost a write a second, and the last word counts', async () => {
    let writes = 0
    const client: RegistrationOptions['client'] = {
      ...api.client,
      patch(resource, key, patch, options) {
        if (options?.subresource === 'status') writes += 1
        return api.client.patch(resource, key, patch, options)
      },
    }
    await using registration = open({ client })
    const attendance = await attended(registration.connected(proxyOf('10.0.0.9')))
    for (let at = 1; at <= 500; at += 1) attendance.health({ isHealthy: false, message: `report ${at}` })
    await until('wg-10.0.0.9', (entry) =>
      entry?.status?.conditions?.find(({ type, message }) => type === 'Healthy' && message === 'report 500'),
    )
    assert.ok(writes <= 2, `${writes} writes`)
    attendance.end()
    await gone('wg-10.0.0.9')
  })

  test('must prove to be of the namespace and the account of the group', async () => {
    await using registration = open()
    for (const identities of [[], ['nobody'], [identity('other', 'vm')], [identity('vms', 'other')]]) {
      await assert.rejects(registration.connected(proxyOf('10.0.0.4', { identities })), {
        name: 'StreamError',
        code: 7,
      })
    }
    await assert.rejects(registration.connected(proxyOf('10.0.0.4', { metadata: { AUTO_REGISTER_GROUP: 'absent' } })), {
      code: 9,
      message: 'auto-registration WorkloadEntry of vm-10.0.0.4 failed: cannot find WorkloadGroup vms/absent',
    })
    assert.equal(await registration.connected(proxyOf('10.0.0.4', { metadata: {} })), undefined)
    await using lenient = open({ validatesIdentity: false })
    ;(await attended(lenient.connected(proxyOf('10.0.0.4', { identities: [] })))).end()
    await gone('wg-10.0.0.4')
  })

  test('do not take over what people wrote', async () => {
    await using registration = open()
    const written: KubeObject = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'WorkloadEntry',
      metadata: { namespace: 'vms', name: 'wg-10.0.0.5' },
      spec: { address: '10.0.0.5' },
    }
    await api.client.create(resources.workloadEntries, written)
    await assert.rejects(registration.connected(proxyOf('10.0.0.5')), /is there and not of WorkloadGroup wg/)
  })

  test('get a deleted entry again while they are connected, also when their group comes back', async () => {
    await using registration = open()
    const attendance = await attended(registration.connected(proxyOf('10.0.0.6')))
    const uid = await until('wg-10.0.0.6', (entry) => entry?.metadata.uid)
    const key = { namespace: 'vms', name: 'wg-10.0.0.6' }
    await api.client.delete(resources.workloadEntries, key)
    await until('wg-10.0.0.6', (entry) => (entry !== undefined && entry.metadata.uid !== uid ? true : undefined))
    await api.client.delete(resources.workloadGroups, { namespace: 'vms', name: 'wg' })
    await api.client.delete(resources.workloadEntries, key)
    await gone('wg-10.0.0.6')
    await createGroup()
    await until('wg-10.0.0.6', (entry) => entry?.metadata.uid)
    attendance.end()
    await gone('wg-10.0.0.6')
  })

  test('report the health of an entry that people wrote, and leave it without when they are gone', async () => {
    await using registration = open()
    const metadata = { WORKLOAD_ENTRY: 'mine' }
    const proxy = proxyOf('10.0.0.7', { metadata })
    await assert.rejects(registration.connected(proxy), /expected a WorkloadEntry vms\/mine with the annotation/)
    const entry = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'WorkloadEntry',
      metadata: {
        namespace: 'vms',
        name: 'mine',
        annotations: { 'proxy.istio.io/health-checks-enabled': 'true' },
      },
      spec: { address: '10.0.0.7', serviceAccount: 'vm' },
    }
    await api.client.create(resources.workloadEntries, entry)
    const attendance = await attended(registration.connected(proxy))
    attendance.health({ isHealthy: true, message: '' })
    await until('mine', (found) => found?.status?.conditions?.find(({ type }) => type === 'Healthy'))
    attendance.end()
    await until('mine', (found) => (found !== undefined && found.status?.conditions?.length === 0 ? true : undefined))
  })

  test('have no entry where that is switched off, and no health where health checks are', async () => {
    await using unregistered = open({ registers: false })
    assert.equal(await unregistered.connected(proxyOf('10.0.0.8')), undefined)
    await using unchecked = open({ checksHealth: false })
    const written = proxyOf('10.0.0.8', { metadata: { WORKLOAD_ENTRY: 'none-such' } })
    assert.equal(await unchecked.connected(written), undefined)

    await using checked = open()
    const silent = await attended(unchecked.connected(proxyOf('10.0.0.18')))
    const heard = await attended(checked.connected(proxyOf('10.0.0.19')))
    for (const one of [silent, heard]) one.health({ isHealthy: true, message: '' })
    // The later word is written.
    await until('wg-10.0.0.19', (entry) => entry?.status?.conditions?.find(({ type }) => type === 'Healthy'))
    const entry = await api.client.get<WorkloadEntry>(resources.workloadEntries, {
      namespace: 'vms',
      name: 'wg-10.0.0.18',
    })
    assert.ok(entry)
    assert.deepEqual(entry.status?.conditions ?? [], [])
    for (const one of [silent, heard]) one.end()
    await gone('wg-10.0.0.18')
    await gone('wg-10.0.0.19')
  })

  test('of a process that is gone are removed by the one that sweeps', async () => {
    {
      await using lost = open({ controller: 'istiod-lost', graceMs: 60_000 })
      ;(await attended(lost.connected(proxyOf('10.0.0.8')))).end()
    }
    await using registration = open({ graceMs: 20 })
    const stop = new AbortController()
    const sweeping = registration.sweep(stop.signal)
    await gone('wg-10.0.0.8')
    stop.abort()
    await sweeping
  })
})

test('the leader looks for abandoned entries at most once a second, and however long the grace period is', () => {
  assert.deepEqual([0, 10_000, 2 ** 31].map(sweepPauseMs), [1_000, 100_000, 2 ** 31 - 1])
})
