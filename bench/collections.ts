// How fast one change passes a graph of 100,000 inputs and three layers of derived collections.
import { createGraph } from '../src/collections/index.ts'

interface Item {
  readonly id: number
  readonly group: string
  readonly weight: number
}

const inputs = 100_000
const changes = 5_000

export async function run(): Promise<Record<string, number | string>[]> {
  const graph = createGraph({
    report: (report) => {
      throw new Error(`unexpected report: ${JSON.stringify(report)}`)
    },
  })
  const items = graph.input<Item>('items')
  const settings = graph.input<number>('settings')
  const started = performance.now()
  const first = graph.derive('first', items, (context, item) => ({
    ...item,
    scaled: item.weight * (context.get(settings, item.group) ?? 1),
  }))
  const byGroup = graph.index('byGroup', first, (item) => [item.group])
  const second = graph.derive('second', first, (context, item, key) => ({
    key,
    scaled: item.scaled,
    heaviest: context.listBy(byGroup, item.group, { where: (one) => one.weight > 990, select: (one) => one.id }).length,
  }))
  const third = graph.derive('third', second, (_, item) => `${item.key}:${item.scaled}:${item.heaviest}`)
  let heard = 0
  third.subscribe((batch) => {
    heard += batch.length
  })
  graph.transaction(() => {
    for (let group = 0; group < inputs / 20; group += 1) settings.set(`g${group}`, 2)
    for (let id = 0; id < inputs; id += 1) items.set(`item${id}`, itemOf(id, 0))
  })
  const buildMs = performance.now() - started

  const times: number[] = []
  for (let round = 1; round <= changes; round += 1) {
    const id = (round * 7919) % inputs
    const start = performance.now()
    items.set(`item${id}`, itemOf(id, round))
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  if (heard < inputs + changes) throw new Error(`only ${heard} changes came through`)
  const at = (part: number): number => Math.round((times[Math.floor(part * times.length)] ?? 0) * 1000)
  return [
    {
      benchmark: 'collections',
      inputs,
      layers: 3,
      'build ms': Math.round(buildMs),
      'change p50 µs': at(0.5),
      'change p99 µs': at(0.99),
      'heap MB': Math.round(process.memoryUsage().heapUsed / 2 ** 20),
    },
  ]
}

function itemOf(id: number, round: number): Item {
  return { id, group: `g${id % (inputs / 20)}`, weight: (id % 900) + round / 10_000 }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await run(), undefined, 2)}\n`)
