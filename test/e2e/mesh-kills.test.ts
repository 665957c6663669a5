// Kill -9 of every process of `lateen up`, one at a time, while pods talk.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, watch } from 'node:fs'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { isReady, type MeshInstance, needsRoot, startMeshInstance, type TestPod } from '../support/mesh-instance.ts'
import { inMesh, namespaceManifest, podManifest, serviceManifest } from '../support/mesh-manifests.ts'

const options = { skip: needsRoot, timeout: 90_000 }
/** For how long what works again is looked at. */
const steadyMs = 1_000

const manifests = [
  namespaceManifest('default', inMesh),
  namespaceManifest('plain'),
  podManifest('server', 'node-1'),
  podManifest('near', 'node-2'),
  serviceManifest('server', 'server'),
  serviceManifest('near', 'near'),
].join('')

const talkers = [
  podManifest('keeps-far', 'node-2', { words: ['keep', 'server'] }),
  podManifest('keeps-near', 'node-2', { words: ['keep', 'near'] }),
  podManifest('asks-far', 'node-2', { words: ['pulse', 'server'] }),
  podManifest('asks-outside', 'node-2', { namespace: 'plain', words: ['pulse', 'server.default'] }),
].join('')

let mesh: MeshInstance

before(async () => {
  if (needsRoot) return
  mesh = await startMeshInstance()
  await mesh.apply(manifests)
  await Promise.all(['server', 'near'].map((name) => mesh.pod(name)))
  await mesh.apply(talkers)
  await Promise.all(['keeps-far', 'keeps-near'].map((name) => saysSince(name, new Date(0), /open/)))
  await Promise.all(['asks-far', 'plain/asks-outside'].map((name) => saysSince(name, new Date(0), /well/)))
}, options)

after(async () => {
  await mesh?.[Symbol.asyncDispose]()
}, options)

const logs = new Map<string, string>()

/** The log on the disk: it can be read whatever is killed. */
async function logOf(name: string): Promise<string> {
  const known = logs.get(name)
  if (known !== undefined) return known
  const { metadata, spec } = await mesh.pod(name)
  const directory = join(mesh.stateDir, 'nodes', spec?.nodeName ?? '', 'pods', metadata.uid ?? '')
  const path = join(directory, 'containers', 'c', '0.log')
  logs.set(name, path)
  return path
}

/** The lines a talker printed since a time. */
async function linesSince(name: string, since: Date): Promise<string[]> {
  const lines = readFileSync(await logOf(name), 'utf8')
    .trim()
    .split('\n')
  return lines.filter((line) => line !== '' && timeOf(line) >= since.getTime())
}

function timeOf(line: string): number {
  return Date.parse(line.split(' ')[0] ?? '')
}

/** Resolves with the first such line that a talker prints after a time. */
async function saysSince(name: string, since: Date, pattern: RegExp): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const look = () => linesSince(name, since).then((lines) => lines.find((line) => pattern.test(line)))
  const watcher = watch(await logOf(name), () => void look().then((line) => line !== undefined && resolve(line)))
  const already = await look()
  if (already !== undefined) resolve(already)
  try {
    return await promise
  } finally {
    watcher.close()
  }
}

/** The first process of a pod's container. */
function processOf({ metadata }: TestPod): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (
        readFileSync(`/proc/${pid}/environ`, 'utf8')
          .split('\0')
          .some((entry) => entry.startsWith(`LATEEN_CONTAINER=${metadata.uid}-`) && !entry.endsWith('-sandbox'))
      )
        return Number(pid)
    } catch {
      // gone meanwhile
    }
  }
  assert.fail(`no process of ${metadata.name}`)
}

async function systemPod(labels: string, node?: string): Promise<TestPod> {
  const pods = await mesh.pods('istio-system', labels)
  const found = pods.find(({ spec }) => node === undefined || spec?.nodeName === node)
  assert.ok(found !== undefined, labels)
  return found
}

const quiet = (lines: readonly string[]) => lines.filter((line) => !/ (well|open)$/.test(line))

/** Nothing but good news since then, and news at all. */
async function talksOn(name: string, since: Date): Promise<void> {
  if (name.includes('asks')) await saysSince(name, new Date(), /well/)
  assert.deepEqual(quiet(await linesSince(name, since)), [], name)
}

/** It fails; then it is well and stays so for a while. */
async function recovers(name: string, killed: Date): Promise<void> {
  let failed: string | undefined = await saysSince(name, killed, / failed/)
  while (failed !== undefined) {
    const again = timeOf(await saysSince(name, new Date(timeOf(failed)), /well/))
    await saysSince(name, new Date(again + steadyMs), /well/)
    failed = quiet(await linesSince(name, new Date(again))).at(-1)
  }
}

const all = ['keeps-far', 'keeps-near', 'asks-far', 'plain/asks-outside']

for (const name of ['apiserver', 'controllers', 'node-1', 'node-2']) {
  test(`${name} is killed: it is started again and traffic never pauses`, options, async () => {
    const since = new Date()
    const before = mesh.processes().find((one) => one.name === name)
    assert.ok(before !== undefined)
    process.kill(before.pid, 'SIGKILL')
    await mesh.settled()
    assert.notEqual(mesh.processes().find((one) => one.name === name)?.pid, before.pid)
    for (const one of all) await talksOn(one, since)
  })
}

for (const [what, labels, node] of [
  ['the control plane', 'app=istiod', undefined],
  ['a node agent', 'k8s-app=istio-cni-node', 'node-1'],
  ['the other node agent', 'k8s-app=istio-cni-node', 'node-2'],
] as const) {
  test(`${what} is killed: it is started again and traffic never pauses`, options, async () => {
    const since = new Date()
    const pod = await systemPod(labels, node)
    const restarts = pod.status?.containerStatuses?.[0]?.restartCount ?? 0
    process.kill(processOf(pod), 'SIGKILL')
    await mesh.pod(
      `istio-system/${pod.metadata.name}`,
      (one) => isReady(one) && (one.status?.containerStatuses?.[0]?.restartCount ?? 0) > restarts,
    )
    for (const one of all) await talksOn(one, since)
  })
}

test('a node proxy is killed: other connections go on, new ones work again once it runs again', options, async () => {
  const pod = await systemPod('app=ztunnel', 'node-1')
  const killed = new Date()
  process.kill(processOf(pod), 'SIGKILL')
  for (const name of ['asks-far', 'plain/asks-outside']) await recovers(name, killed)
  await talksOn('keeps-near', killed)
})

test('an application is killed: it is started again and new connections work', options, async () => {
  const pod = await mesh.pod('server')
  const killed = new Date()
  process.kill(processOf(pod), 'SIGKILL')
  await mesh.pod('server', (one) => isReady(one) && (one.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0)
  await recovers('asks-far', killed)
  await talksOn('keeps-near', killed)
})
