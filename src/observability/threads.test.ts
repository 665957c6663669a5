import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { isMainThread, MessageChannel, parentPort, Worker, workerData } from 'node:worker_threads'
import {
  connectThread,
  createLogging,
  createMetricsRegistry,
  createThreadMetrics,
  joinThread,
  type LogSink,
  type MetricsRegistry,
  registerLogMetrics,
  renderMetrics,
  type ThreadStart,
} from './index.ts'

/** What a worker of these tests is told to do; it answers each with `done`. */
type Order =
  | { readonly kind: 'count'; readonly family: string; readonly label: string; readonly by: number }
  | { readonly kind: 'gauge' | 'observe'; readonly value: number }
  | { readonly kind: 'remove'; readonly family: string; readonly label: string }
  | { readonly kind: 'hold'; readonly gate: SharedArrayBuffer }
  | { readonly kind: 'log'; readonly lines: number; readonly level: 'info' | 'debug' }
  | { readonly kind: 'log then end'; readonly how: 'throw' | 'exit' | 'wait' }

if (isMainThread) defineTests()
else runWorker(workerData as ThreadStart)

function runWorker(start: ThreadStart): void {
  const { metrics, logging } = joinThread(start)
  const counters = new Map(
    ['shared_total', 'theirs_total'].map((name) => [name, metrics.counter({ name, help: name, labels: ['x'] })]),
  )
  const gauge = metrics.gauge({ name: 'open', help: 'Open' }).with({})
  const times = metrics.histogram({ name: 'time', help: 'Time', bounds: [1, 10] }).with({})
  const log = logging.scope('work')
  parentPort?.on('message', (order: Order) => {
    switch (order.kind) {
      case 'count':
        counters.get(order.family)?.with({ x: order.label }).inc(order.by)
        break
      case 'gauge':
        gauge.set(order.value)
        break
      case 'observe':
        times.observe(order.value)
        break
      case 'remove': {
        const family = counters.get(order.family)
        const held = family?.with({ x: order.label })
        family?.remove({ x: order.label })
        held?.inc(1000)
        break
      }
      case 'hold':
        parentPort?.postMessage('holding')
        Atomics.wait(new Int32Array(order.gate), 0, 0)
        break
      case 'log':
        for (let line = 0; line < order.lines; line += 1) log.log(order.level, `line ${line}`)
        break
      case 'log then end':
        log.info('last words')
        if (order.how === 'throw') throw new Error('broken')
        if (order.how === 'exit') process.exit(3)
        parentPort?.postMessage('holding')
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }
    parentPort?.postMessage('done')
  })
}

function startWorker(options: Parameters<typeof connectThread>[1], worker = '0') {
  const { start, transfer } = connectThread(worker, options)
  const thread = new Worker(import.meta.filename, { workerData: start, transferList: [...transfer] })
  return {
    thread,
    async order(order: Order) {
      thread.postMessage(order)
      await once(thread, 'message')
    },
    [Symbol.asyncDispose]: async () => void (await thread.terminate()),
  }
}

function memorySink(): LogSink & { readonly lines: string[] } {
  const lines: string[] = []
  const write = (text: string) => void lines.push(...text.trimEnd().split('\n'))
  return { lines, write, dropped: 0, flush: async () => {}, flushSync: () => {} }
}

const quiet = () => createLogging({ sink: memorySink() })

function valueIn(registry: MetricsRegistry, name: string, label?: string): number | undefined {
  const family = registry.snapshot().find((one) => one.name === name)
  return family?.series.find(({ labels }) => label === undefined || labels[0] === label)?.value
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

function defineTests(): void {
  test('equal labels are summed over the main thread and workers, even while a worker is stuck', async () => {
    const registry = createMetricsRegistry()
    const own = registry.counter({ name: 'shared_total', help: 'Shared', labels: ['x'] })
    own.with({ x: 'a' }).inc()
    const options = { registry, logging: quiet() }
    await using one = startWorker(options)
    await using other = startWorker(options, '1')
    await one.order({ kind: 'count', family: 'shared_total', label: 'a', by: 10 })
    await other.order({ kind: 'count', family: 'shared_total', label: 'a', by: 100 })
    await other.order({ kind: 'count', family: 'shared_total', label: 'b', by: 7 })
    const gate = new SharedArrayBuffer(4)
    await one.order({ kind: 'hold', gate })
    await until(() => valueIn(registry, 'shared_total', 'b') === 7)
    await until(() => valueIn(registry, 'shared_total', 'a') === 111)
    Atomics.store(new Int32Array(gate), 0, 1)
    Atomics.notify(new Int32Array(gate), 0)
    await once(one.thread, 'message')
    await one.order({ kind: 'count', family: 'shared_total', label: 'a', by: 1 })
    assert.equal(valueIn(registry, 'shared_total', 'a'), 112)
  })

  test('a family only workers have is exposed with their description', async () => {
    const registry = createMetricsRegistry()
    await using worker = startWorker({ registry, logging: quiet() })
    for (const value of [0.5, 2, 20]) await worker.order({ kind: 'observe', value })
    await until(() => valueIn(registry, 'time') === 22.5)
    const text = await renderMetrics(registry, 'text')
    assert.match(text, /# HELP time Time\n# TYPE time histogram\n/)
    assert.match(
      text,
      /time_bucket\{le="1"\} 1\ntime_bucket\{le="10"\} 2\ntime_bucket\{le="\+Inf"\} 3\ntime_sum 22.5\ntime_count 3\n/,
    )
  })

  test('a thread that ended keeps its counts, its gauges drop, and a successor counts on', async () => {
    const registry = createMetricsRegistry()
    const options = { registry, logging: quiet() }
    const first = startWorker(options)
    await first.order({ kind: 'count', family: 'theirs_total', label: 'a', by: 5 })
    await first.order({ kind: 'observe', value: 2 })
    await first.order({ kind: 'gauge', value: 3 })
    await until(() => valueIn(registry, 'open') === 3)
    await first.thread.terminate()
    await until(() => valueIn(registry, 'open') === undefined)
    assert.equal(valueIn(registry, 'theirs_total', 'a'), 5)
    assert.deepEqual(registry.snapshot().find(({ name }) => name === 'time')?.series[0]?.buckets, [0, 1, 0])
    await using second = startWorker(options)
    await second.order({ kind: 'count', family: 'theirs_total', label: 'a', by: 1 })
    await until(() => valueIn(registry, 'theirs_total', 'a') === 6)
  })

  test('a removed series is gone, its place is used again, and who still holds it harms nobody', async () => {
    const registry = createMetricsRegistry()
    await using worker = startWorker({ registry, logging: quiet() })
    for (let round = 0; round < 50; round += 1) {
      const label = String(round)
      await worker.order({ kind: 'count', family: 'theirs_total', label, by: 1 })
      await until(() => valueIn(registry, 'theirs_total', label) === 1)
      await worker.order({ kind: 'remove', family: 'theirs_total', label })
      await until(() => valueIn(registry, 'theirs_total', label) === undefined)
    }
  })

  test('a counter that others still count keeps what the one that removed it counted', async () => {
    const registry = createMetricsRegistry()
    const options = { registry, logging: quiet() }
    await using one = startWorker(options)
    await using other = startWorker(options, '1')
    await one.order({ kind: 'count', family: 'theirs_total', label: 'a', by: 1 })
    await other.order({ kind: 'count', family: 'theirs_total', label: 'a', by: 2 })
    await one.order({ kind: 'remove', family: 'theirs_total', label: 'a' })
    await until(() => valueIn(registry, 'theirs_total', 'a') === 3)
    await other.order({ kind: 'remove', family: 'theirs_total', label: 'a' })
    await until(() => valueIn(registry, 'theirs_total', 'a') === undefined)
  })

  test('thousands of series of two threads add up', async () => {
    const registry = createMetricsRegistry()
    const options = { registry, logging: quiet() }
    await using one = startWorker(options)
    await using other = startWorker(options, '1')
    const series = 3000
    for (const worker of [one, other]) {
      for (let index = 0; index < series; index += 1) {
        worker.thread.postMessage({ kind: 'count', family: 'theirs_total', label: String(index), by: index })
      }
      await worker.order({ kind: 'gauge', value: 1 })
    }
    await until(() => valueIn(registry, 'theirs_total', String(series - 1)) === 2 * (series - 1))
    const family = registry.snapshot().find(({ name }) => name === 'theirs_total')
    assert.equal(family?.series.length, series)
    for (const { labels, value } of family?.series ?? []) assert.equal(value, 2 * Number(labels[0]))
  })

  test('lines of workers are written in order, and levels set on the main thread apply there', async () => {
    const sink = memorySink()
    const logging = createLogging({ sink })
    await using worker = startWorker({ registry: createMetricsRegistry(), logging })
    await worker.order({ kind: 'log', lines: 3000, level: 'info' })
    await worker.order({ kind: 'log', lines: 1, level: 'debug' })
    await logging.flush()
    assert.deepEqual(
      sink.lines.map((line) => line.split('\t').slice(1).join(' ')),
      Array.from({ length: 3000 }, (_, index) => `info work line ${index}`),
    )
    logging.addToFilter('work=debug')
    // Levels and orders come by channels of their own, in no order.
    do await worker.order({ kind: 'log', lines: 1, level: 'debug' })
    while (sink.lines.length === 3000)
    assert.match(sink.lines.at(-1) ?? '', /\tdebug\twork\tline 0$/)
  })

  test('lines beyond the bound are dropped, counted, told and exposed', async () => {
    const sink = memorySink()
    const registry = createMetricsRegistry()
    const logging = createLogging({ sink })
    registerLogMetrics(registry, logging)
    const worker = startWorker({ registry, logging })
    // The main thread does not turn while the worker writes more than may wait.
    const gate = new SharedArrayBuffer(4)
    worker.thread.postMessage({ kind: 'log', lines: 40_000, level: 'info' })
    worker.thread.postMessage({ kind: 'hold', gate })
    const stopAt = performance.now() + 60_000
    while (logging.dropped === 0 && performance.now() < stopAt);
    Atomics.store(new Int32Array(gate), 0, 1)
    await once(worker.thread, 'message')
    await worker.thread.terminate()
    await until(() => sink.lines.some((line) => line.includes('log lines dropped')))
    await logging.flush()
    const written = sink.lines.filter((line) => line.includes('\twork\t')).map((line) => Number(line.split(' ').at(-1)))
    const told = sink.lines.flatMap((line) => /log lines dropped\tworker=0 count=(\d+)$/.exec(line)?.[1] ?? [])
    assert.ok(logging.dropped > 0)
    assert.equal(written.length + logging.dropped, 40_000)
    assert.deepEqual(
      written,
      [...written].sort((a, b) => a - b),
    )
    assert.equal(
      told.reduce((sum, count) => sum + Number(count), 0),
      logging.dropped,
    )
    assert.equal(valueIn(registry, 'lateen_log_lines_dropped_total'), logging.dropped)
  })

  for (const how of ['throw', 'exit', 'wait'] as const) {
    test(`the last lines of a worker are written, however it ends: ${how}`, async () => {
      const sink = memorySink()
      const logging = createLogging({ sink })
      const { thread } = startWorker({ registry: createMetricsRegistry(), logging })
      thread.on('error', () => undefined)
      const ended = new Promise((resolve) => thread.once('exit', resolve))
      thread.postMessage({ kind: 'log then end', how })
      if (how === 'wait') {
        await once(thread, 'message')
        await thread.terminate()
      }
      await ended
      logging.flushSync()
      assert.match(sink.lines.join(), /last words/)
    })
  }

  test('each worker tells how busy it is, and a blocked one shows it', async () => {
    const registry = createMetricsRegistry()
    await using worker = startWorker({ registry, logging: quiet() }, '7')
    await worker.order({ kind: 'gauge', value: 0 })
    const longDelays = () => {
      const family = registry.snapshot().find(({ name }) => name === 'lateen_event_loop_delay_seconds')
      const { buckets = [] } = family?.series.find(({ labels }) => labels[0] === '7') ?? {}
      return buckets.reduce((sum, count, index) => sum + ((family?.bounds[index - 1] ?? 0) >= 0.1 ? count : 0), 0)
    }
    const active = () => valueIn(registry, 'lateen_event_loop_active_seconds_total', '7') ?? 0
    await until(() => active() > 0)
    const gate = new SharedArrayBuffer(4)
    await worker.order({ kind: 'hold', gate })
    const before = active()
    const blockedUntil = performance.now() + 300
    await until(() => performance.now() > blockedUntil)
    Atomics.store(new Int32Array(gate), 0, 1)
    Atomics.notify(new Int32Array(gate), 0)
    await until(() => longDelays() > 0 && active() > before)
    assert.ok(active() - before >= 0.29, `${active() - before}`)
    assert.ok((valueIn(registry, 'lateen_event_loop_idle_seconds_total', '7') ?? 0) > 0)
  })

  test('each worker tells what its heap takes', async () => {
    const registry = createMetricsRegistry()
    await using worker = startWorker({ registry, logging: quiet() }, '7')
    await worker.order({ kind: 'gauge', value: 0 })
    const kinds = () => {
      const family = registry.snapshot().find(({ name }) => name === 'lateen_thread_memory_bytes')
      return new Map(family?.series.map(({ labels: [, kind = ''], value }) => [kind, value]))
    }
    await until(() => kinds().size === 4)
    const [used = 0, reserved = 0] = [kinds().get('heap_used'), kinds().get('heap_reserved')]
    assert.ok(used > 1e6 && used <= reserved, `${used} of ${reserved}`)
  })

  test('a thread that gives a family another shape is refused', () => {
    const registry = createMetricsRegistry()
    registry.counter({ name: 'a_total', help: 'A', labels: ['x'] })
    const { port1, port2 } = new MessageChannel()
    const link = registry.addThread(port1)
    createThreadMetrics(port2).counter({ name: 'a_total', help: 'A', labels: ['y'] })
    assert.throws(() => link[Symbol.dispose](), /a_total is registered with different types, labels or bounds/)
    port2.close()
  })
}
