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
const settlingSeconds = 200
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
    const before = sample(proxies, 0)
    const until = performance.now() + minutes * 60_000
    const running = () => performance.now() < until
    const policy: PolicyState = { denial: 'allowed', epoch: 0 }
    const samples: Sample[] = []
    await Promise.all([
      ...clients.flatMap(({ name }) =>
        Array.from({ length: parallel }, () => callWhile(lab, name, running, policy, counts)),
      ),
      changePolicies(lab, running, policy, counts),
      changePods(lab, running, counts),
      changeWorkloads(lab, running),
      takeSamples(lab, proxies, running, samples),
    ])
    const last = await descriptorsClosed(proxies, before, minutes * 60)
    report(counts, samples, last)
    judge(counts, samples, { before, last })
  } finally {
    await lab[Symbol.asyncDispose]()
  }
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

/** The sample in which no more is open than before all connections, or else that of half a minute later. */
async function descriptorsClosed(proxies: readonly LabProxy[], before: Sample, seconds: number): Promise<Sample> {
  for (let round = 0; ; round += 1) {
    await delay(1000)
    const now = sample(proxies, seconds)
    if (round === 30 || moreDescriptors(before, now).every((more) => more <= spareDescriptors)) return now
  }
}

const moreDescriptors = (before: Sample, last: Sample): readonly number[] =>
  last.descriptors.map((open, index) => open - (before.descriptors[index] ?? 0))

async function takeSamples(
  lab: MeshLab,
  proxies: readonly LabProxy[],
  running: () => boolean,
  samples: Sample[],
): Promise<void> {
  const startedAt = performance.now()
  await askHeap(lab, '/profiling?activate=true')
  while (running()) {
    await delay(15_000)
    // A heap profile begins with a full collection, on each thread: what is left is held.
    await askHeap(lab, '')
    // What is held without a load says nothing of what grows under it.
    if (!running()) return
    samples.push(sample(proxies, (performance.now() - startedAt) / 1000))
  }
}

async function askHeap(lab: MeshLab, path: string): Promise<void> {
  const url = `http://127.0.0.1:15000/debug/pprof/heap${path}`
  await Promise.all(['n1', 'n2'].map((node) => lab.run(node, 'curl', '-sS', '-m', '20', '-o', '/dev/null', url)))
}

function report(counts: Counts, samples: readonly Sample[], last: Sample): void {
  const { wrong, ...numbers } = counts
  process.stdout.write(`${JSON.stringify({ ...numbers, wrong: wrong.length })}\n`)
  for (const one of [...samples.filter((_, index) => index % 2 === 0), last]) {
    const megabytes = one.megabytes.map((value) => value.toFixed(0)).join('/')
    process.stdout.write(`${one.seconds.toFixed(0)} s: ${megabytes} MB, ${one.descriptors.join('/')} descriptors\n`)
  }
}

/** Throws with everything that went wrong. */
function judge(
  counts: Counts,
  samples: readonly Sample[],
  { before, last }: { readonly before: Sample; readonly last: Sample },
): void {
  const more = moreDescriptors(before, last)
  const problems = [...new Set(counts.wrong)].slice(0, 20)
  if (counts.calls === 0 || counts.policyChanges === 0 || counts.pods === 0) problems.push('nothing happened')
  // The first minutes fill pools and buffers.
  const settled = samples.filter(({ seconds }) => seconds > settlingSeconds)
  for (const [index, name] of ['n1', 'n2'].entries()) {
    const slope = slopeOf(settled.map(({ seconds, megabytes }) => [seconds / 60, megabytes[index] ?? 0]))
    if (settled.length >= 16 && slope > 3) problems.push(`${name}: memory grows by ${slope.toFixed(1)} MB a minute`)
    const left = more[index] ?? 0
    if (left > spareDescriptors) problems.push(`${name}: ${left} descriptors are left when all connections have ended`)
  }
  if (problems.length > 0) throw new Error(`the soak found:\n${problems.join('\n')}`)
}

/** Least squares. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
  const [x, y] = [mean(points.map(([one]) => one)), mean(points.map(([, one]) => one))]
  const spread = points.reduce((sum, [one]) => sum + (one - x) ** 2, 0)
  return spread === 0 ? 0 : points.reduce((sum, [one, other]) => sum + (one - x) * (other - y), 0) / spread
}

if (import.meta.main) await soak(Number(process.argv[2] ?? 10))
