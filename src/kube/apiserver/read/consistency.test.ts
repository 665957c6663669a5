// A client that lists once and then watches must always end with what a fresh list shows, whatever was written and wherever it began.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { type Json, startTestApi, type TestApi } from '../testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

type Step = { readonly kind: 'put' | 'delete'; readonly name: string; readonly app: string }

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('put', 'put', 'delete'),
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    app: fc.constantFrom('x', 'y'),
  }),
  { minLength: 1, maxLength: 25 },
)

async function perform(path: string, { kind, name, app }: Step): Promise<void> {
  if (kind === 'delete') {
    await api.send('DELETE', `${path}/${name}`)
    return
  }
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { app } } }
  await api.ok('PATCH', `${path}/${name}?fieldManager=t&force=true`, body, 'application/apply-patch+yaml')
}

function versions(objects: Iterable<Json>): string[] {
  return [...objects].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort()
}

test('list and watch agree', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(24), fc.constantFrom('', 'labelSelector=app%3Dx'), async (all, begin, selector) => {
      const path = `${await api.namespace()}/configmaps`
      const before = all.slice(0, begin)
      for (const step of before) await perform(path, step)
      const list = await api.ok('GET', `${path}?${selector}`)
      const known = new Map<string, Json>(list.items.map((item: Json) => [item.metadata.name, item]))
      for (const step of all.slice(begin)) await perform(path, step)
      const last = await api.ok('POST', path, { metadata: { name: 'last', labels: { app: 'x' } } })

      using events = api.watch(`${path}?watch=1&resourceVersion=${list.metadata.resourceVersion}&${selector}`)
      for await (const { type, object } of events) {
        const { name } = object.metadata
        assert.equal(type === 'ADDED', !known.has(name), `${type} ${name}`)
        if (type === 'DELETED') known.delete(name)
        else known.set(name, object)
        if (object.metadata.resourceVersion === last.metadata.resourceVersion) break
      }
      const fresh = await api.ok('GET', `${path}?${selector}`)
      assert.deepEqual(versions(known.values()), versions(fresh.items))
      const past = await api.ok(
        'GET',
        `${path}?resourceVersion=${list.metadata.resourceVersion}&resourceVersionMatch=Exact&${selector}`,
      )
      assert.deepEqual(versions(past.items), versions(list.items))
    }),
    { numRuns: 40 },
  )
})
