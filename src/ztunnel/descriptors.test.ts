import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchDescriptors } from './descriptors.ts'

test('a shortage is told once, and again only after it was over', async () => {
  const seen = [10, 94, 95, 99, 85, 96, 79, 50, Number.POSITIVE_INFINITY, 100]
  const said: string[] = []
  const all = Promise.withResolvers<void>()
  const tell = (message: string, fields?: object) => void said.push(`${message} ${JSON.stringify(fields)}`)
  using _watch = watchDescriptors({
    limit: 100,
    intervalMs: 1,
    log: { warn: tell, info: tell },
    async count() {
      const next = seen.shift()
      if (next === undefined) all.resolve()
      return next ?? 90
    },
  })
  const keepAlive = setInterval(() => undefined, 1000)
  await all.promise
  clearInterval(keepAlive)
  assert.deepEqual(said, [
    'descriptors run short: new connections will be refused {"open":95,"limit":100}',
    'there are enough descriptors again {"open":79,"limit":100}',
    'descriptors run short: new connections will be refused {"open":100,"limit":100}',
  ])
})
