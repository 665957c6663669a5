// Runs two node proxies for a while under churn of pods, policies and connections, and checks that nothing is lost, leaked or decided
// wrongly. Needs root. `node bench/soak.ts [minutes]`; 10 by default. Fails with a list of what went wrong.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import type net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { security } from '../src/proto/index.ts'
import { createMeshLab, type LabProxy, type MeshLab } from '../test/support/mesh-lab.ts'
import { announcePod, announceService } from '../test/support/mesh-lab-content.ts'

const server = { name: 'server', ip: '10.77.2.1', node: 'n2' }
const clients = Array.from({ length: 4 }, (_, index) => ({
  name: `client${index}`,
  ip: `10.77.2.${10 + index}`,
  node: 'n1',
}))
/** Comes and goes all the time. */
const guest = { name: 'guest', ip: '10.77.2.30', node: 'n1' }
const service = { name: 'echo', vips: ['10.78.0.9'], ports: { 80: 8080 } }
const to = { ip: '10.78.0.9', port: 80 }
const parallel = 16
/**
 * Equal loads, with a rest after each. The first compiles code, fills pools and lets the heaps grow to their size; what grows from the
 * second to the last is held for nothing.
 */
const rounds = 4
/** In which an idle proxy gives back what a load has left. */
const restSeconds = 45
/** More than this between rounds is growth; two equal rounds differ by some megabytes. */
const spareMegabytes = 15
/** The same of what the heaps hold when they have just been collected. */
const spareHeldMegabytes = 3
/** Several threads on any machine, and no tunnel connection that nobody uses is left when the descriptors are counted. */
const settings = { ZTUNNEL_WORKER_THREADS: '2', POOL_UNUSED_RELEASE_TIMEOUT: '2s' }
/** To the control plane, to the node agent, and what Node opens for itself. */
const spareDescriptors = 4
/** The one client that a policy denies every other moment. */
const denied = 'client0'

interface Sample {
  readonly seconds: number
  readonly descriptors: readonly number[]
  readonly megabytes: readonly number[]
}

/** One load and the rest after it. */
interface Round {
  readonly loaded: readonly Sample[]
  readonly rested: Sample
  /** What the heaps of each proxy's threads hold at rest, in megabytes. */
  readonly held: readonly number[]
}

interface Counts {
  calls: number
  bytes: number
  refused: number
  refusedRightly: number
  policyChanges: number
  pods: number
  readonly wrong: string[]
}

/** Whether the policy is in force; `changing` while it may or may not be. */
interface PolicyState {
  denial: 'allowed' | 'denied' | 'changing'
  /** Grows with each change, so that a call over several of them is told from one within a state. */
  epoch: number
}

export async function soak(minutes: number): Promise<void> {
  const lab = await createMeshLab({ pods: [server, ...clients, guest], nodes: ['n1', 'n2'] })
  const counts: Counts = { calls: 0, bytes: 0, refused: 0, refusedRightly: 0, policyChanges: 0, pods: 0, wrong: [] }
  try {
    for (const pod of [...clients, guest]) announcePod(lab, pod)
    announcePod(lab, server, [service])
    announceService(lab, service)
    await lab.listen('server', 8080, answer)
    const proxies = await Promise.all([lab.startProxy('n1', settings), lab.startProxy('n2', settings)])
    const run = { lab, proxies, counts, startedAt: performance.now(), before: sample(proxies, 0) }
    const done: Round[] = []
    for (let round = 1; round <= rounds; round += 1) {
      done.push(await runRound(run, (minutes * 60_000) / rounds))
    }
    report(counts, done)
    judge(counts, done, run.before)
  } finally {
    await lab[Symbol.asyncDispose]()
  }
}

interface Run {
  readonly lab: MeshLab
  readonly proxies: readonly LabProxy[]
  readonly counts: Counts
  readonly startedAt: number
  readonly before: Sample
}

async function runRound({ lab, proxies, counts, startedAt, before }: Run, loadMs: number): Promise<Round> {
  const until = performance.now() + loadMs
  const running = () => performance.now() < until
  const seconds = () => (performance.now() - startedAt) / 1000
  const policy: PolicyState = { denial: 'allowed', epoch: 0 }
  const loaded: Sample[] = []
  await Promise.all([
    ...clients.flatMap(({ name }) =>
      Array.from({ length: parallel }, () => callWhile(lab, name, running, policy, counts)),
    ),
    changePolicies(lab, running, policy, counts),
    changePods(lab, running, counts),
    changeWorkloads(lab, running),
    takeSamples(lab, running, () => loaded.push(sample(proxies, seconds()))),
  ])
  await descriptorsClosed(proxies, before)
  await delay(restSeconds * 1000)
  const rested = sample(proxies, seconds())
  return { loaded, rested, held: await heldMegabytes(lab) }
}

/** Answers with the digest of what was sent, then with the same number of bytes. */
function answer(socket: net.Socket): void {
  const digest = createHash('sha256')
  let bytes = 0
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    digest.update(chunk)
    bytes += chunk.length
  })
  socket.on('end', () => socket.end(Buffer.concat([digest.digest(), Buffer.alloc(bytes, 7)])))
}

async function callWhile(
  lab: MeshLab,
  pod: string,
  running: () => boolean,
  policy: Readonly<PolicyState>,
  counts: Counts,
): Promise<void> {
  while (running()) {
    const before = { ...policy }
    const sent = randomBytes(1 + Math.floor(Math.random() ** 6 * 1024 * 1024))
    const error = await call(lab, pod, sent)
    const isOneState = policy.epoch === before.epoch
    counts.calls += 1
    if (error === undefined) counts.bytes += sent.length
    const isDeniable = pod === denied
    if (error === undefined) {
      if (isDeniable && before.denial === 'denied' && isOneState) counts.wrong.push(`${pod} was let through`)
    } else if (isDeniable && !(before.denial === 'allowed' && isOneState)) {
      counts.refusedRightly += 1
    } else {
      counts.refused += 1
      counts.wrong.push(`${pod}: ${error}`)
    }
    await delay(Math.random() * 30)
  }
}

/** What went wrong with one connection, if anything. */
async function call(lab: MeshLab, pod: string, sent: Buffer): Promise<string | undefined> {
  try {
    const socket = await lab.connect(pod, to)
    socket.on('error', () => undefined)
    socket.end(sent)
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    const got = Buffer.concat(chunks)
    if (got.length === 0) return 'closed without an answer'
    if (got.length !== 32 + sent.length) return `${got.length - 32} bytes back of ${sent.length}`
    const digest = createHash('sha256').update(sent).digest()
    return got.subarray(0, 32).equals(digest) ? undefined : 'the bytes were changed'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function changePolicies(
  lab: MeshLab,
  running: () => boolean,
  policy: PolicyState,
  counts: Counts,
): Promise<void> {
  const principal = `cluster.local/ns/default/sa/${denied}`
  const matches = [{ principals: [{ matchType: { case: 'exact' as const, value: principal } }] }]
  const enter = (denial: PolicyState['denial']): void => {
    policy.denial = denial
    policy.epoch += 1
  }
  while (running()) {
    await delay(1000)
    enter('changing')
    lab.controlPlane.setPolicy({
      name: 'deny',
      namespace: 'default',
      scope: security.Scope.NAMESPACE,
      action: security.Action.DENY,
      groups: [{ rules: [{ matches }] }],
    })
    await inForce(lab, true)
    enter('denied')
    await delay(1000)
    enter('changing')
    lab.controlPlane.removePolicy('default/deny')
    await inForce(lab, false)
    enter('allowed')
    counts.policyChanges += 2
  }
}

/** Until the server's proxy shows the policy, or shows it no more, and a moment for all its threads. */
async function inForce(lab: MeshLab, wanted: boolean): Promise<void> {
  for (;;) {
    const dump = JSON.parse(await lab.run('n2', 'curl', '-sS', '-m', '10', 'http://127.0.0.1:15000/config_dump'))
    if (dump.policies.length > 0 === wanted) break
    await delay(50)
  }
  await delay(300)
}

/** The guest's pod is taken from the proxy in the middle of its connections, and given back. */
async function changePods(lab: MeshLab, running: () => boolean, counts: Counts): Promise<void> {
  const agent = lab.agentOf('n1')
  const pod = {
    uid: 'uid-guest',
    namespacePath: lab.namespacePath('guest'),
    pod: { name: 'guest', namespace: 'default', serviceAccount: 'guest' },
  }
  while (running()) {
    const calls = Promise.all(Array.from({ length: 8 }, () => call(lab, 'guest', randomBytes(100_000))))
    await delay(20 + Math.random() * 200)
    const removed = await agent.remove(pod.uid)
    await calls
    lab.controlPlane.removeAddress('c1//Pod/default/guest')
    await delay(50)
    announcePod(lab, guest)
    const added = await agent.add(pod)
    for (const error of [removed, added]) if (error !== '') counts.wrong.push(`the node agent was told: ${error}`)
    counts.pods += 1
    await delay(300)
  }
}

/** Other pods and services of the mesh, that these connections do not use. */
async function changeWorkloads(lab: MeshLab, running: () => boolean): Promise<void> {
  for (let round = 0; running(); round += 1) {
    const pod = { name: `other${round % 200}`, ip: `10.77.9.${round % 200}`, node: 'n3' }
    if (Math.floor(round / 200) % 2 === 0) announcePod(lab, pod)
    else lab.controlPlane.removeAddress(`c1//Pod/default/${pod.name}`)
    await delay(20)
  }
}

function sample(proxies: readonly LabProxy[], seconds: number): Sample {
  return {
    seconds,
    descriptors: proxies.map(({ pid }) => readdirSync(`/proc/${pid}/fd`).length),
    megabytes: proxies.map((proxy) => proxy.rss() / 1024 / 1024),
  }
}

/** Until no more is open than before all connections, or half a minute. */
async function descriptorsClosed(proxies: readonly LabProxy[], before: Sample): Promise<void> {
  for (let round = 0; round < 30; round += 1) {
    await delay(1000)
    if (moreDescriptors(before, sample(proxies, 0)).every((more) => more <= spareDescriptors)) return
  }
}

const moreDescriptors = (before: Sample, last: Sample): readonly number[] =>
  last.descriptors.map((open, index) => open - (before.descriptors[index] ?? 0))

async function takeSamples(lab: MeshLab, running: () => boolean, take: () => void): Promise<void> {
  while (running()) {
    await delay(15_000)
    await collect(lab)
    // What is held without a load says nothing of what is held under it.
    if (running()) take()
  }
}

/** A heap profile begins with a full collection, on each thread: what is left is held. */
async function collect(lab: MeshLab): Promise<void> {
  await eachNode(lab, '/debug/pprof/heap/profiling?activate=true')
  await eachNode(lab, '/debug/pprof/heap')
  await eachNode(lab, '/debug/pprof/heap/profiling?activate=false')
}

async function heldMegabytes(lab: MeshLab): Promise<readonly number[]> {
  await collect(lab)
  // Each thread measures its heap once a second.
  await delay(2000)
  const texts = await eachNode(lab, '/metrics', 15020)
  return texts.map((text) => {
    const series = text.matchAll(/^lateen_thread_memory_bytes\{.*kind="(?:heap_used|external)".*\} (\S+)$/gm)
    return [...series].reduce((sum, [, value]) => sum + Number(value), 0) / 1024 / 1024
  })
}

const eachNode = (lab: MeshLab, path: string, port = 15000): Promise<string[]> =>
  Promise.all(['n1', 'n2'].map((node) => lab.run(node, 'curl', '-sS', '-m', '20', `http://127.0.0.1:${port}${path}`)))

function report(counts: Counts, done: readonly Round[]): void {
  const { wrong, ...numbers } = counts
  process.stdout.write(`${JSON.stringify({ ...numbers, wrong: wrong.length })}\n`)
  const print = (what: string, { seconds, megabytes, descriptors }: Sample): void => {
    const memory = megabytes.map((value) => value.toFixed(0)).join('/')
    process.stdout.write(`${seconds.toFixed(0)} s, ${what}: ${memory} MB, ${descriptors.join('/')} descriptors\n`)
  }
  for (const { loaded, rested, held } of done) {
    for (const one of loaded.filter((_, index) => index % 4 === 3)) print('load', one)
    print(`rest, ${held.map((value) => value.toFixed(1)).join('/')} MB held`, rested)
  }
}

/** Throws with everything that went wrong. */
function judge(counts: Counts, done: readonly Round[], before: Sample): void {
  const problems = [...new Set(counts.wrong)].slice(0, 20)
  if (counts.calls === 0 || counts.policyChanges === 0 || counts.pods === 0) problems.push('nothing happened')
  const last = done.at(-1)
  if (last === undefined) throw new Error('no round was run')
  const left = moreDescriptors(before, last.rested)
  for (const [index, name] of ['n1', 'n2'].entries()) {
    const settled = done.slice(1)
    const check = (when: string, spare: number, of: (round: Round) => number): void => {
      const megabytes = settled.map(of)
      if ((megabytes.at(-1) ?? 0) - (megabytes.at(0) ?? 0) > spare) problems.push(grown(name, when, megabytes))
    }
    check('at rest', spareMegabytes, ({ rested }) => rested.megabytes[index] ?? 0)
    check('held', spareHeldMegabytes, ({ held }) => held[index] ?? 0)
    check('under load', spareMegabytes, ({ loaded }) =>
      Math.max(0, ...loaded.map(({ megabytes }) => megabytes[index] ?? 0)),
    )
    if ((left[index] ?? 0) > spareDescriptors) {
      problems.push(`${name}: ${left[index]} descriptors are left when all connections have ended`)
    }
  }
  if (problems.length > 0) throw new Error(`the soak found:\n${problems.join('\n')}`)
}

const grown = (name: string, when: string, megabytes: readonly number[]): string =>
  `${name}: memory ${when} grows from round to round: ${megabytes.map((value) => value.toFixed(0)).join(', ')} MB`

if (import.meta.main) await soak(Number(process.argv[2] ?? 10))
