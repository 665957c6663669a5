// A workload outside of the cluster over its xDS stream: it registers, says how it is, and is gone when its stream is.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { status } from '@grpc/grpc-js'
import { resources, type WorkloadEntry } from '../../src/api/index.ts'
import { workload } from '../../src/proto/index.ts'
import {
  ensureServiceAccount,
  meshRoots,
  namespaceNamed,
  tokenOf,
  workloadGroupOf,
} from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { openStream, type VirtualMachine } from '../support/virtual-machine.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const entryName = 'wg-10.8.0.1-vm-net'
const uid = `Kubernetes/networking.istio.io/WorkloadEntry/vms/${entryName}`

describe('a workload outside of the cluster', { timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-registration-'))
  let api: TestApi
  let discovery: RunningDiscovery
  let observer: XdsObserver
  let roots: string
  before(async () => {
    api = await startTestApi()
    for (const name of ['istio-system', 'vms', 'other']) {
      await api.client.create(resources.namespaces, namespaceNamed(name))
      await ensureServiceAccount(api.client, name, 'vm')
    }
    const group = workloadGroupOf('vms', 'wg', 'vm', {
      metadata: { labels: { app: 'a' } },
      probe: { httpGet: { port: 8080 } },
    })
    await api.client.create(resources.workloadGroups, group)
    discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir: dir,
      flags: { networksConfig: join(dir, 'none') },
      env: { PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '500ms' },
    })
    await ensureServiceAccount(api.client, 'istio-system', 'ztunnel')
    roots = await meshRoots(api.client)
    const token = await tokenOf(api.client, { namespace: 'istio-system', name: 'ztunnel' })
    observer = observeXds(discovery.ports.grpc, { tls: { roots, token } })
    await observer.client.synced
  })
  after(async () => {
    await observer?.[Symbol.asyncDispose]()
    await discovery?.stop()
    await api?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  const open = async (namespace: string): Promise<VirtualMachine> =>
    openStream(discovery.ports.grpc, { roots, token: await tokenOf(api.client, { namespace, name: 'vm' }) })
  const seen = (): workload.Workload | undefined => {
    const held = observer.held.get(uid)
    if (held === undefined) return undefined
    const { type } = fromBinary(workload.AddressSchema, held.body)
    return type.case === 'workload' ? type.value : undefined
  }

  test('is a workload of the mesh while it is connected, healthy when it says so', async () => {
    const machine = await open('vms')
    await machine.answered
    await observer.until(() => seen() !== undefined)
    const { status: unsaid, locality, network, canonicalName, canonicalRevision } = seen() ?? {}
    assert.equal(unsaid, workload.WorkloadStatus.UNHEALTHY)
    assert.deepEqual(
      [locality?.region, locality?.zone, network, canonicalName, canonicalRevision],
      ['eu', 'eu-1', 'vm-net', 'a', 'v2'],
    )
    machine.say(true)
    await observer.until(() => seen()?.status === workload.WorkloadStatus.HEALTHY)
    machine.say(false, 'connection refused')
    await observer.until(() => seen()?.status === workload.WorkloadStatus.UNHEALTHY)
    const entry = await api.client.get<WorkloadEntry>(resources.workloadEntries, { namespace: 'vms', name: entryName })
    assert.equal(entry?.status?.conditions?.find(({ type }) => type === 'Healthy')?.message, 'connection refused')

    machine.close()
    await observer.until(() => seen() === undefined)
    assert.equal(await discovery.metric('auto_registration_success_total'), '1')
    assert.equal(await discovery.metric('auto_registration_deletes_total'), '1')
  })

  test('of another namespace is not let in', async () => {
    const machine = await open('other')
    const { code } = await machine.ended
    assert.equal(code, status.PERMISSION_DENIED)
    machine.close()
    assert.equal(seen(), undefined)
  })
})
