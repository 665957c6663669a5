import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import { parseLocalFile } from './local-file.ts'
import type { MeshChange } from './store.ts'
import { createMeshState } from './store.ts'
import { usableEndpoints } from './view.ts'

const pod = { name: 'web-0', namespace: 'shop', serviceAccount: 'web' }
const web =
  '{uid: web, name: web-0, namespace: shop, serviceAccount: web, node: n1, workloadIps: [10.0.0.1], services: {}}'

test('of several workloads on an address, the pod comes first, then HBONE, then the newest', () => {
  const state = meshOf(`workloads:
  - {uid: c1//Pod/a/pod, namespace: a, workloadIps: [10.0.0.1], services: {}}
  - {uid: entry-hbone, namespace: a, workloadIps: [10.0.0.1, 10.0.0.2, 10.0.0.3], protocol: HBONE, services: {}}
  - {uid: entry-old, namespace: a, workloadIps: [10.0.0.2, 10.0.0.3], services: {}}
  - {uid: host, namespace: a, workloadIps: [10.0.0.9], networkMode: HostNetwork, services: {}}`)
  assert.equal(state.workloadByAddress('', '10.0.0.1')?.uid, 'c1//Pod/a/pod')
  assert.equal(state.workloadByAddress('', '10.0.0.2')?.uid, 'entry-hbone')
  assert.equal(state.workloadByAddress('', '10.0.0.9'), undefined)
  assert.equal(state.workloadByAddress('other', '10.0.0.1'), undefined)
  state.apply({ removedAddresses: ['c1//Pod/a/pod', 'entry-hbone'] })
  assert.equal(state.workloadByAddress('', '10.0.0.1'), undefined)
  assert.equal(state.workloadByAddress('', '10.0.0.3')?.uid, 'entry-old')
})

test('a local workload is one of this node, found by name, namespace and service account', () => {
  assert.equal(meshOf(`workloads: [${web}]`, 'n1').localWorkload(pod)?.uid, 'web')
  assert.equal(meshOf(`workloads: [${web}]`).localWorkload(pod)?.uid, 'web')
  assert.equal(meshOf(`workloads: [${web}]`, 'n2').localWorkload(pod), undefined)
  assert.equal(meshOf(`workloads: [${web}]`).localWorkload({ ...pod, serviceAccount: 'other' }), undefined)
})

test('waiting for a local workload ends when it arrives', async () => {
  const state = createMeshState()
  const waiting = state.waitForLocalWorkload(pod)
  state.apply({
    workloads: parseLocalFile('workloads: [{uid: x, namespace: shop, workloadIps: [], services: {}}]').workloads,
  })
  state.apply({ workloads: parseLocalFile(`workloads: [${web}]`).workloads })
  assert.equal((await waiting).uid, 'web')
})

test('waiting for a local workload ends with an error that names it', async () => {
  await assert.rejects(createMeshState().waitForLocalWorkload(pod, { timeoutMs: 1 }), {
    code: 'UNKNOWN_LOCAL_WORKLOAD',
    message: 'failed to fetch information about local workload: web.shop (web-0)',
  })
  const aborting = new AbortController()
  const waiting = createMeshState().waitForLocalWorkload(pod, { signal: aborting.signal })
  aborting.abort()
  await assert.rejects(waiting, { code: 'ABORTED' })
})

test('a push is visible as a whole, and told as a whole', () => {
  const state = createMeshState()
  const seen: MeshChange[] = []
  const end = state.subscribe((change) => {
    seen.push(change)
    assert.equal(state.workload('web')?.name, 'web-0')
    assert.ok(state.service('shop/web.example'))
  })
  const content = parseLocalFile(
    `{workloads: [${web}], services: [{name: web, namespace: shop, hostname: web.example, vips: [], ports: {}}]}`,
  )
  state.apply(content)
  end()
  state.apply({ removedAddresses: ['web'] })
  assert.equal(seen.length, 1)
  assert.deepEqual(
    seen[0]?.workloads.map(({ key, old }) => ({ key, old })),
    [{ key: 'web', old: undefined }],
  )
  assert.deepEqual(
    seen[0]?.services.map(({ key }) => key),
    ['shop/web.example'],
  )
})

test('replacing the content reports what is gone', () => {
  const state = meshOf(`workloads: [${web}]`)
  let removed: readonly string[] = []
  state.subscribe((change) => {
    removed = change.workloads.filter((one) => one.new === undefined).map((one) => one.key)
  })
  state.replace({})
  assert.deepEqual(removed, ['web'])
  assert.equal(state.localWorkload(pod), undefined)
})

test('endpoints of a file come on top of those of the workloads, with their own health', () => {
  const state = meshOf(`
workloads:
- {uid: a, namespace: n, workloadIps: [10.0.0.1], services: {n/s.example: {80: 8080}}}
- {uid: b, namespace: n, workloadIps: [10.0.0.2], services: {}}
services:
- name: s
  namespace: n
  hostname: s.example
  vips: []
  ports: {80: 80}
  endpoints:
    a: {workloadUid: a, port: {80: 9090}, status: Unhealthy}
    b: {workloadUid: b, port: {}, status: Healthy}
    missing: {workloadUid: missing, port: {}}`)
  const service = state.service('n/s.example')
  assert.ok(service)
  assert.deepEqual([...state.endpoints(service)].map((one) => one.workload.uid).sort(), ['a', 'b'])
  assert.deepEqual(
    [...usableEndpoints(state, service)].map((one) => one.workload.uid),
    ['b'],
  )
  assert.equal(state.endpoint(service, 'a')?.ports.get(80), 9090)
  assert.deepEqual([...(state.workload('b')?.services.keys() ?? [])], ['n/s.example'])
})

test('ten thousand workloads of one service are applied in linear time', () => {
  const workloads = (count: number) =>
    parseLocalFile(
      JSON.stringify({
        workloads: Array.from({ length: count }, (_, index) => ({
          uid: `w${index}`,
          namespace: 'n',
          workloadIps: [`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`],
          services: { 'n/s.example': { 80: 8080 } },
        })),
      }),
    ).workloads
  const timeOf = (count: number): number => {
    const content = workloads(count)
    const state = createMeshState()
    const startedAt = performance.now()
    for (const workload of content) state.apply({ workloads: [workload] })
    return (performance.now() - startedAt) / count
  }
  timeOf(1000)
  assert.ok(timeOf(10_000) < 20 * Math.max(timeOf(1000), 0.001), 'the cost of one workload grows with their number')
})
