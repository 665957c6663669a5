// One process with a mesh and threads that read it: what it takes in memory, and what a large push does to the threads.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { createDeltaReceiver, createMeshState } from '../../src/ztunnel/state/index.ts'
import { addressUpdate } from './content.ts'

export interface Measured {
  readonly grownMegabytes: number
  readonly sharedMegabytes: number
  readonly applyMs: number
  readonly pushMegabytes: number
  /** Of a thread's event loop while the push was applied, and while the main thread only counted for as long. */
  readonly longestStallMs: number
  readonly comparedStallMs: number
}

const [workloads = 0, services = 0, readers = 0] = process.argv.slice(2).map(Number)

/** Resident, without what the encoded push itself takes: it is made and dropped before. */
const residentMegabytes = (): number =>
  Number(/^Rss:\s+(\d+) kB/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))?.[1]) / 1000

/** The state arrives in parts, as it does on the wire: a message is at most a few megabytes. */
function* parts(part: number) {
  const update = addressUpdate(workloads, services)
  for (let from = 0; from < update.resources.length; from += part) {
    yield { ...update, resources: update.resources.slice(from, from + part) }
  }
}

const state = createMeshState({ node: 'node-1', readers })
const receive = createDeltaReceiver(state)
const script = new URL('./thread.ts', import.meta.url)
const threads = Array.from(
  { length: readers },
  (_, reader) => new Worker(script, { workerData: { memory: state.memory, reader } }),
)
await Promise.all(threads.map((thread) => once(thread, 'message')))
state.onPublish((publication) => {
  for (const thread of threads) thread.postMessage(publication)
})
/** All threads at once: how long each stood still. */
async function ask(message: 'watch' | 'stop'): Promise<{ longestMs: number }[]> {
  const answers = threads.map((thread) => once(thread, 'message'))
  for (const thread of threads) thread.postMessage(message)
  return (await Promise.all(answers)).map(([answer]) => answer)
}

const longest = (answers: readonly { longestMs: number }[]): number =>
  Math.max(0, ...answers.map((one) => one.longestMs))

const whole = process.argv[5] === 'whole'
const update = [...parts(whole ? Number.POSITIVE_INFINITY : 1000)]
const pushBytes = update.reduce(
  (sum, { resources }) => sum + resources.reduce((all, one) => all + one.body.length, 0),
  0,
)
globalThis.gc?.()
const before = residentMegabytes()
await ask('watch')
const startedAt = performance.now()
for (const part of update) receive(part)
const applyMs = performance.now() - startedAt
const stalls = await ask('stop')
await ask('watch')
for (const until = performance.now() + applyMs; performance.now() < until; );
const compared = await ask('stop')
globalThis.gc?.()
const measured: Measured = {
  grownMegabytes: residentMegabytes() - before,
  sharedMegabytes: state.usage().usedBytes / 1e6,
  applyMs,
  pushMegabytes: pushBytes / 1e6,
  longestStallMs: longest(stalls),
  comparedStallMs: longest(compared),
}
process.send?.(measured)
if (process.send === undefined) process.stdout.write(`${JSON.stringify(measured)}\n`)
await Promise.all(threads.map((thread) => thread.terminate()))
