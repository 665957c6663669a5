import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Change, type CollectionReport, createGraph, type Graph } from './index.ts'

function graphWithReports(): { graph: Graph; reports: CollectionReport[] } {
  const reports: CollectionReport[] = []
  return { graph: createGraph({ report: (report) => reports.push(report) }), reports }
}

function recordWaves<T>(collection: { subscribe(listener: (changes: readonly Change<T>[]) => void): () => void }) {
  const waves: string[][] = []
  const stop = collection.subscribe((changes) =>
    waves.push(changes.map((change) => `${change.kind} ${change.key}`).sort()),
  )
  return { waves, stop }
}

function runsOf(graph: Graph, name: string): number {
  return graph.describe().find((one) => one.name === name)?.recomputations ?? -1
}

test('a transaction gives one wave, with the last value of each key', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const doubled = graph.derive('doubled', numbers, (_, value) => value * 2)
  const { waves } = recordWaves(doubled)
  graph.transaction(() => {
    numbers.set('a', 1)
    numbers.set('b', 2)
    numbers.set('a', 3)
    numbers.set('c', 4)
    numbers.delete('c')
  })
  assert.deepEqual(waves, [['added a', 'added b']])
  assert.deepEqual(
    [...doubled.entries()],
    [
      ['a', 6],
      ['b', 4],
    ],
  )
})

test('inside a transaction the graph shows the state before it', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  graph.transaction(() => {
    numbers.set('a', 1)
    assert.equal(numbers.get('a'), undefined)
  })
  assert.equal(numbers.get('a'), 1)
})

test('the keys of an input are also those whose changes wait', () => {
  const reports: CollectionReport[] = []
  let paused = true
  let resume = (): void => assert.fail('nothing waits')
  const pace = {
    shouldPause: () => paused,
    later: (next: () => void) => {
      resume = next
    },
  }
  const graph = createGraph({ report: (report) => reports.push(report), pace })
  const numbers = graph.input<number>('numbers')
  numbers.set('a', 1)
  graph.transaction(() => {
    numbers.set('b', 2)
    assert.deepEqual([...numbers.keys()].sort(), ['a', 'b'])
    for (const key of numbers.keys()) numbers.delete(key)
  })
  numbers.set('c', 3)
  paused = false
  resume()
  assert.deepEqual([...numbers.entries()], [['c', 3]])
})

test('a transaction that throws changes nothing', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  assert.throws(() =>
    graph.transaction(() => {
      graph.transaction(() => numbers.set('a', 1))
      throw new Error('no')
    }),
  )
  numbers.set('b', 2)
  assert.deepEqual([...numbers.entries()], [['b', 2]])
})

test('a subscriber gets the present content first, then each wave once', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  numbers.set('a', 1)
  const { waves, stop } = recordWaves(numbers)
  numbers.set('a', 2)
  numbers.delete('a')
  stop()
  numbers.set('b', 1)
  assert.deepEqual(waves, [['added a'], ['updated a'], ['removed a']])
})

test('a change made by a subscriber becomes a wave of its own after the present one', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const echo = graph.input<number>('echo')
  numbers.subscribe((changes) => {
    for (const change of changes) if (change.kind !== 'removed') echo.set(change.key, change.new)
  })
  const { waves } = recordWaves(echo)
  numbers.set('a', 1)
  assert.deepEqual(waves, [['added a']])
})

test('two paths from one input are computed once, from consistent values', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const halves = graph.derive('halves', numbers, (_, value) => value / 2)
  const seen: string[] = []
  const sums = graph.derive('sums', numbers, (context, value, key) => {
    const half = context.get(halves, key) ?? 0
    seen.push(`${value}:${half}`)
    return value + half
  })
  numbers.set('a', 2)
  numbers.set('a', 4)
  assert.deepEqual(seen, ['2:1', '4:2'])
  assert.equal(sums.get('a'), 6)
})

test('an equal value stops the wave', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const parities = graph.derive('parities', numbers, (_, value) => ({ odd: value % 2 === 1 }))
  graph.derive('texts', parities, (_, { odd }) => (odd ? 'odd' : 'even'))
  numbers.set('a', 1)
  numbers.set('a', 3)
  numbers.set('a', 3)
  assert.equal(runsOf(graph, 'parities'), 2)
  assert.equal(runsOf(graph, 'texts'), 1)
})

test('equality can be chosen', () => {
  const { graph } = graphWithReports()
  const words = graph.input<string>('words', { equals: (a, b) => a.toLowerCase() === b.toLowerCase() })
  const { waves } = recordWaves(words)
  words.set('a', 'One')
  words.set('a', 'ONE')
  assert.deepEqual(waves, [['added a']])
})

test('only runs whose reads changed are computed again', () => {
  interface Animal {
    readonly kind: string
    readonly legs: number
    readonly name: string
  }
  const { graph } = graphWithReports()
  const animals = graph.input<Animal>('animals')
  const byKind = graph.index('byKind', animals, (animal) => [animal.kind])
  const questions = graph.input<'key' | 'pick' | 'index' | 'where' | 'select' | 'all'>('questions')
  const runs: string[] = []
  graph.derive('answers', questions, (context, question, key) => {
    runs.push(key)
    switch (question) {
      case 'key':
        return context.get(animals, 'rex')?.name
      case 'pick':
        return context.pick(animals, 'rex', (animal) => animal?.legs)
      case 'index':
        return context.listBy(byKind, 'dog').length
      case 'where':
        return context.listBy(byKind, 'dog', { where: (animal) => animal.legs === 3 }).length
      case 'select':
        return context.list(animals, { select: (animal) => animal.legs }).reduce((sum, legs) => sum + legs, 0)
      case 'all':
        return context.list(animals).length
    }
  })
  graph.transaction(() => {
    for (const question of ['key', 'pick', 'index', 'where', 'select', 'all'] as const)
      questions.set(question, question)
    animals.set('rex', { kind: 'dog', legs: 4, name: 'Rex' })
    animals.set('tom', { kind: 'cat', legs: 4, name: 'Tom' })
  })
  const affected = (change: () => void): string[] => {
    runs.length = 0
    change()
    return [...runs].sort()
  }
  assert.deepEqual(
    affected(() => animals.set('rex', { kind: 'dog', legs: 4, name: 'Rexy' })),
    ['all', 'index', 'key'],
  )
  assert.deepEqual(
    affected(() => animals.set('tom', { kind: 'cat', legs: 3, name: 'Tom' })),
    ['all', 'select'],
  )
  assert.deepEqual(
    affected(() => animals.set('bea', { kind: 'dog', legs: 3, name: 'Bea' })),
    ['all', 'index', 'select', 'where'],
  )
  assert.deepEqual(
    affected(() => animals.set('rex', { kind: 'dog', legs: 3, name: 'Rexy' })),
    ['all', 'index', 'key', 'pick', 'select', 'where'],
  )
  assert.deepEqual(
    affected(() => animals.set('tom', { kind: 'dog', legs: 4, name: 'Tom' })),
    ['all', 'index', 'select'],
  )
})

test('a read that a run no longer makes is forgotten', () => {
  const { graph } = graphWithReports()
  const switches = graph.input<boolean>('switches')
  const numbers = graph.input<number>('numbers')
  const runs: number[] = []
  const shown = graph.singleton('shown', (context) => {
    runs.push(1)
    return context.get(switches, 'on') ? context.get(numbers, 'n') : undefined
  })
  graph.transaction(() => {
    switches.set('on', true)
    numbers.set('n', 1)
  })
  assert.equal(shown.value, 1)
  switches.set('on', false)
  assert.equal(shown.value, undefined)
  const before = runs.length
  numbers.set('n', 2)
  assert.equal(runs.length, before)
})

test('one input can give several keyed values; of two inputs with one key the smaller counts', () => {
  const { graph, reports } = graphWithReports()
  const lists = graph.input<readonly string[]>('lists')
  const owners = graph.deriveMany('owners', lists, (_, words, key) => words.map((word) => [word, key] as const))
  const { waves } = recordWaves(owners)
  lists.set('b', ['x', 'y'])
  lists.set('a', ['y', 'z'])
  assert.equal(owners.get('y'), 'a')
  assert.deepEqual(reports, [{ kind: 'duplicate-key', collection: 'owners', key: 'y', inputs: ['a', 'b'] }])
  lists.delete('a')
  assert.equal(owners.get('y'), 'b')
  lists.set('b', [])
  assert.equal(owners.size, 0)
  assert.deepEqual(waves, [
    ['added x', 'added y'],
    ['added z', 'updated y'],
    ['removed z', 'updated y'],
    ['removed x', 'removed y'],
  ])
})

test('in a join the first collection wins; when it loses the key the next one shows as an update', () => {
  const { graph } = graphWithReports()
  const [first, second] = [graph.input<string>('first'), graph.input<string>('second')]
  const both = graph.join('both', [first, second])
  second.set('k', 'two')
  first.set('k', 'one')
  const { waves } = recordWaves(both)
  assert.equal(both.get('k'), 'one')
  first.delete('k')
  assert.equal(both.get('k'), 'two')
  assert.deepEqual(waves, [['added k'], ['updated k']])
  const merged = graph.joinMerged('merged', [first, second], (values) => values.join('+'))
  first.set('k', 'one')
  assert.equal(merged.get('k'), 'one+two')
})

test('a group holds the values of each index key', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const groups = graph.group('groups', numbers, (value) => [value % 2 === 0 ? 'even' : 'odd'])
  graph.transaction(() => {
    numbers.set('b', 2)
    numbers.set('a', 4)
    numbers.set('c', 1)
  })
  assert.deepEqual([...groups.entries()].sort(), [
    ['even', [4, 2]],
    ['odd', [1]],
  ])
  numbers.set('c', 6)
  assert.deepEqual([...groups.entries()], [['even', [4, 2, 6]]])
})

test('a function that throws keeps the last good value and is reported', () => {
  const { graph, reports } = graphWithReports()
  const texts = graph.input<string>('texts')
  const parsed = graph.derive('parsed', texts, (_, text) => JSON.parse(text) as unknown)
  texts.set('a', '1')
  texts.set('a', '{')
  texts.set('b', '2')
  assert.deepEqual(
    [...parsed.entries()],
    [
      ['a', 1],
      ['b', 2],
    ],
  )
  assert.equal(reports.length, 1)
  assert.equal(reports[0]?.kind === 'derivation-failed' && reports[0].key, 'a')
  texts.set('a', '3')
  assert.equal(parsed.get('a'), 3)
  texts.set('a', '{')
  texts.delete('a')
  assert.equal(parsed.get('a'), undefined)
})

test('a value whose index keys cannot be told is found under none, and the others are found', () => {
  const { graph, reports } = graphWithReports()
  const lists = graph.input<{ readonly words: readonly string[] }>('lists')
  const byWord = graph.index('byWord', lists, ({ words }) => words.map((word) => word.toLowerCase()))
  const groups = graph.group('groups', lists, ({ words }) => words.map((word) => word.toLowerCase()))
  graph.transaction(() => {
    lists.set('bad', { words: null } as never)
    lists.set('good', { words: ['X'] })
  })
  assert.equal(byWord.get('x').length, 1)
  assert.equal(groups.get('x')?.length, 1)
  assert.deepEqual(
    reports.map(({ kind }) => kind),
    ['index-failed', 'index-failed'],
  )
  lists.set('bad', { words: ['x'] })
  assert.equal(byWord.get('x').length, 2)
})

test('a subscriber that throws does not keep the others from hearing', () => {
  const { graph, reports } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  numbers.subscribe(() => {
    throw new Error('deaf')
  })
  const { waves } = recordWaves(numbers)
  numbers.set('a', 1)
  assert.deepEqual(waves, [['added a']])
  assert.equal(reports[0]?.kind, 'listener-failed')
})

test('collections that read each other are refused with the path', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const later: { b?: ReturnType<typeof graph.derive<number, number>> } = {}
  const a = graph.derive('a', numbers, (context, value, key) =>
    later.b === undefined ? value : (context.get(later.b, key) ?? 0),
  )
  later.b = graph.derive('b', numbers, (context, value, key) => (context.get(a, key) ?? 0) + value)
  assert.throws(() => numbers.set('k', 1), {
    code: 'COLLECTION_CYCLE',
    message: /a reads b reads a|b reads a reads b/,
  })
})

test('a derivation may not change the graph', () => {
  const { graph, reports } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  graph.derive('impure', numbers, () => numbers.set('other', 1))
  numbers.set('a', 1)
  assert.equal(
    reports[0]?.kind === 'derivation-failed' && (reports[0].error as { code?: string }).code,
    'COLLECTION_BUSY',
  )
})

test('a collection is synced when everything it reads is', async () => {
  const { graph } = graphWithReports()
  const [names, ages] = [graph.input<string>('names'), graph.input<number>('ages')]
  const people = graph.derive('people', names, (context, name, key) => `${name} ${context.get(ages, key)}`, {
    reads: [ages],
  })
  const count = graph.singleton('count', (context) => context.list(people).length)
  assert.equal(people.synced, false)
  names.markSynced()
  assert.equal(names.synced, true)
  assert.equal(people.synced, false)
  ages.markSynced()
  assert.equal(people.synced, true)
  assert.equal(count.collection.synced, true)
  await Promise.all([people.whenSynced, count.collection.whenSynced])
})

test('on-demand values live as long as somebody holds or reads them', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const wanted = graph.input<string>('wanted')
  const squares = graph.onDemand('squares', (context, key) => {
    const value = context.get(numbers, key)
    return value === undefined ? undefined : value * value
  })
  const readers = graph.derive('readers', wanted, (context, key) => context.get(squares, key))
  numbers.set('a', 3)
  assert.equal(squares.size, 0)
  const first = squares.acquire('a')
  const second = squares.acquire('a')
  assert.equal(first.value, 9)
  assert.equal(runsOf(graph, 'squares'), 1)
  numbers.set('a', 4)
  assert.equal(second.value, 16)
  first.close()
  first.close()
  assert.equal(squares.get('a'), 16)
  wanted.set('w', 'a')
  assert.equal(readers.get('w'), 16)
  second.close()
  assert.equal(squares.get('a'), 16)
  numbers.set('a', 5)
  assert.equal(readers.get('w'), 25)
  wanted.delete('w')
  assert.equal(squares.size, 0)
  const before = runsOf(graph, 'squares')
  numbers.set('a', 6)
  assert.equal(runsOf(graph, 'squares'), before)
})

test('idle on-demand values are kept up to a number, the longest unused leaving first', () => {
  const { graph } = graphWithReports()
  const echoes = graph.onDemand('echoes', (_, key) => key, { keepIdle: 2 })
  for (const key of ['a', 'b', 'c']) echoes.acquire(key).close()
  assert.deepEqual(
    [...echoes.entries()].map(([key]) => key),
    ['b', 'c'],
  )
  echoes.acquire('b').close()
  echoes.acquire('d').close()
  assert.deepEqual(
    [...echoes.entries()].map(([key]) => key),
    ['b', 'd'],
  )
})

test('the graph tells names, sizes, edges, counts and what a value was computed from', () => {
  const { graph } = graphWithReports()
  const numbers = graph.input<number>('numbers')
  const byParity = graph.index('byParity', numbers, (value) => [String(value % 2)])
  const peers = graph.derive('peers', numbers, (context, value) => context.listBy(byParity, String(value % 2)).length)
  numbers.set('a', 1)
  const description = graph.describe().find((one) => one.name === 'peers')
  assert.equal(description?.size, 1)
  assert.deepEqual(description?.reads, ['numbers'])
  assert.equal(description?.recomputations, 1)
  assert.equal(typeof description?.milliseconds, 'number')
  assert.deepEqual(graph.describe()[0]?.readBy, ['peers'])
  assert.deepEqual(graph.dependenciesOf(peers, 'a'), ['numbers by byParity[1]'])
})
