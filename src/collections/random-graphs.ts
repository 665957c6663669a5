// For tests: random graphs, random changes, and the same evaluated naively from nothing.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Collection, createGraph, type Graph, type Index, type OnDemandCollection, type Pace } from './index.ts'

/** One derived collection over the ones before it; `source` and `other` count back from it, modulo what there is. */
export interface Stage {
  readonly kind: 'get' | 'pick' | 'list' | 'where' | 'by' | 'chain' | 'many' | 'join' | 'group' | 'only' | 'demand'
  readonly source: number
  readonly other: number
}

/** What stages read through, in the engine and in the naive evaluation alike. */
interface Reader {
  get(at: number, key: string): number | undefined
  parity(at: number, key: string): number | undefined
  list(at: number): readonly number[]
  odd(at: number): readonly number[]
  by(at: number, remainder: number): readonly number[]
  /** A value computed on demand from the one under the key. */
  demanded(at: number, key: string): number | undefined
}

export type Content = ReadonlyMap<string, number>
export type Change = { readonly input: number; readonly key: string; readonly value: number | undefined }

export const inputs = 2
export const keys = ['a', 'b', 'c', 'd']
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const bounded = (value: number): number => value % 50

function computeOne(stage: Stage, other: number, read: Reader, value: number, key: string): number | undefined {
  switch (stage.kind) {
    case 'get':
      return bounded(value + (read.get(other, key) ?? 0))
    case 'pick':
      return bounded(value + (read.parity(other, key) ?? 7))
    case 'list':
      return bounded(value + sum(read.list(other)))
    case 'where':
      return bounded(value + sum(read.odd(other)))
    case 'by':
      return read.by(other, value % 3).length
    case 'chain': {
      const next = keys[value % keys.length] ?? 'a'
      const found = read.get(other, next)
      return found === undefined ? undefined : bounded(found + (read.get(other, keys[found % keys.length] ?? 'a') ?? 1))
    }
    case 'demand':
      return bounded(value + (read.demanded(other, keys[value % keys.length] ?? 'a') ?? 1))
    default:
      return value % 2 === 0 ? undefined : bounded(value + key.length)
  }
}

const computeDemanded = (found: number | undefined): number | undefined =>
  found === undefined ? undefined : bounded(found * 3)

const computeMany = (value: number, key: string): [string, number][] => [
  [keys[value % keys.length] ?? 'a', value],
  [key === 'a' ? 'd' : 'a', bounded(value + 1)],
]

export class Incremental {
  readonly graph: Graph
  readonly collections: Collection<number>[]
  readonly runs = new Set<string>()
  readonly demands: { readonly demand: OnDemandCollection<number>; readonly reads: Collection<number> | undefined }[] =
    []
  /** By remainder of 3. */
  readonly indexes: { readonly collection: Collection<number>; readonly index: Index<number> }[] = []
  readonly #inputs

  constructor(stages: readonly Stage[], pace?: Pace) {
    this.graph = createGraph({
      ...(pace === undefined ? {} : { pace }),
      report: (report) => {
        if (report.kind !== 'duplicate-key') assert.fail(JSON.stringify(report))
      },
    })
    this.#inputs = Array.from({ length: inputs }, (_, at) => this.graph.input<number>(`input${at}`))
    this.collections = [...this.#inputs]
    for (const stage of stages) this.#add(stage)
  }

  apply(changes: readonly Change[]): void {
    this.graph.transaction(() => {
      for (const { input, key, value } of changes) {
        if (value === undefined) this.#inputs[input]?.delete(key)
        else this.#inputs[input]?.set(key, value)
      }
    })
  }

  #add(stage: Stage): void {
    const { graph, collections, runs } = this
    const at = collections.length
    const name = `stage${at}`
    const pick = (back: number): Collection<number> => collections[back % at] as Collection<number>
    const source = pick(stage.source)
    const index = collections.map((one, of) => graph.index(`${name}/${of}`, one, (value) => [String(value % 3)]))
    for (const [of, one] of index.entries()) {
      const collection = collections[of]
      if (collection !== undefined) this.indexes.push({ collection, index: one })
    }
    const demand = graph.onDemand(`${name}/demand`, (context, key) =>
      computeDemanded(context.get(pick(stage.other), key)),
    )
    this.demands.push({ demand, reads: stage.kind === 'demand' ? source : undefined })
    const reader = (context: Parameters<Parameters<Graph['singleton']>[1]>[0]): Reader => ({
      get: (of, key) => context.get(pick(of), key),
      parity: (of, key) => context.pick(pick(of), key, (value) => (value === undefined ? undefined : value % 2)),
      list: (of) => context.list(pick(of)),
      odd: (of) => context.list(pick(of), { where: (value) => value % 2 === 1, select: (value) => value % 5 }),
      demanded: (_, key) => context.get(demand, key),
      by: (of, remainder) => {
        const found = index[of % at]
        return found === undefined ? [] : context.listBy(found, String(remainder))
      },
    })
    switch (stage.kind) {
      case 'many':
        collections.push(
          graph.deriveMany(name, source, (_, value, key) => {
            runs.add(`${name} ${key}`)
            return computeMany(value, key)
          }),
        )
        return
      case 'join':
        collections.push(graph.join(name, [source, pick(stage.other)]))
        return
      case 'group': {
        const groups = graph.group(`${name}/groups`, source, (value) => [keys[value % keys.length] ?? 'a'])
        collections.push(graph.derive(name, groups, (_, values) => bounded(sum(values))))
        return
      }
      case 'only': {
        const { collection } = graph.singleton(name, (context) => {
          runs.add(`${name} `)
          return bounded(sum(context.list(source)))
        })
        collections.push(collection)
        return
      }
      default:
        collections.push(
          graph.derive(name, source, (context, value, key) => {
            runs.add(`${name} ${key}`)
            return computeOne(stage, stage.other, reader(context), value, key)
          }),
        )
    }
  }
}

/** All contents from nothing, and for each run what it was given and answered. */
export function computeFromNothing(stages: readonly Stage[], given: readonly Content[]) {
  const contents: Content[] = [...given]
  const traces = new Map<string, string>()
  for (const stage of stages) {
    const at = contents.length
    const name = `stage${at}`
    const pick = (back: number): [string, number][] => {
      const content = contents[back % at] ?? new Map<string, number>()
      return [...content].sort(([a], [b]) => (a < b ? -1 : 1))
    }
    const source = pick(stage.source)
    const result = new Map<string, number>()
    contents.push(result)
    for (const [key, value] of source) {
      const trace: unknown[] = [value]
      const told = <T>(answer: T): T => {
        trace.push(answer)
        return answer
      }
      const values = (entries: readonly [string, number][]): number[] => told(entries).map(([, one]) => one)
      const get = (of: number, wanted: string): number | undefined => pick(of).find(([one]) => one === wanted)?.[1]
      const reader: Reader = {
        get: (of, wanted) => told(get(of, wanted)),
        parity: (of, wanted) => {
          const found = get(of, wanted)
          return told(found === undefined ? undefined : found % 2)
        },
        list: (of) => values(pick(of)),
        odd: (of) =>
          values(
            pick(of)
              .filter(([, one]) => one % 2 === 1)
              .map(([k, one]) => [k, one % 5]),
          ),
        demanded: (of, wanted) => told(computeDemanded(get(of, wanted))),
        by: (of, remainder) => values(pick(of).filter(([, one]) => one % 3 === remainder)),
      }
      switch (stage.kind) {
        case 'many':
          for (const [output, one] of computeMany(value, key)) if (!result.has(output)) result.set(output, one)
          break
        case 'join':
          result.set(key, value)
          break
        case 'group': {
          const group = keys[value % keys.length] ?? 'a'
          result.set(group, (result.get(group) ?? 0) + value)
          break
        }
        case 'only':
          break
        default: {
          const output = computeOne(stage, stage.other, reader, value, key)
          if (output !== undefined) result.set(key, output)
        }
      }
      if (stage.kind !== 'join' && stage.kind !== 'group') traces.set(`${name} ${key}`, JSON.stringify(trace))
    }
    if (stage.kind === 'join')
      for (const [key, value] of pick(stage.other)) if (!result.has(key)) result.set(key, value)
    if (stage.kind === 'group') for (const [key, value] of result) result.set(key, bounded(value))
    if (stage.kind === 'only') {
      for (const key of traces.keys()) if (key.startsWith(`${name} `)) traces.delete(key)
      traces.set(`${name} `, JSON.stringify(source))
      result.set('', bounded(sum(source.map(([, value]) => value))))
    }
  }
  return { contents, traces }
}

const stageKinds = ['get', 'pick', 'list', 'where', 'by', 'chain', 'many', 'join', 'group', 'only', 'demand'] as const
export const someStages = fc.array(
  fc.record({ kind: fc.constantFrom(...stageKinds), source: fc.nat(9), other: fc.nat(9) }),
  {
    minLength: 1,
    maxLength: 7,
  },
)
export const someChange = fc.record({
  input: fc.nat(inputs - 1),
  key: fc.constantFrom(...keys),
  value: fc.option(fc.nat(12), { nil: undefined, freq: 3 }),
})
export const someWaves = fc.array(fc.array(someChange, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 8 })
