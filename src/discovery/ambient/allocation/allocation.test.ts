import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { ServiceEntry } from '../../../api/index.ts'
import { createGraph } from '../../../collections/index.ts'
import { createAmbientInputs } from '../inputs.ts'
import { AddressRange } from './address-range.ts'
import { AddressAllocator, type HostAddress } from './allocator.ts'
import { runAddressAllocation } from './run-allocation.ts'

function entry(
  name: string,
  hosts: readonly string[],
  fields: Partial<ServiceEntry> & { created?: string } = {},
): ServiceEntry {
  const { created, spec, ...rest } = fields
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { name, namespace: 'ns', ...(created === undefined ? {} : { creationTimestamp: created }) },
    spec: { hosts, resolution: 'DNS', ...spec },
    ...rest,
  }
}

const prefixes = { ipv4Prefix: '240.240.0.0/29', ipv6Prefix: '2001:2::/48' }

function allocator(exhausted: string[] = []): AddressAllocator {
  return new AddressAllocator({
    ...prefixes,
    exhausted: (name, host, prefix) => exhausted.push(`${name} ${host} ${prefix}`),
  })
}

const values = (addresses: readonly HostAddress[] | undefined) =>
  addresses?.map(({ host, value }) => `${host} ${value}`)
const one = (of: AddressAllocator, given: ServiceEntry) =>
  values(of.update([[given.metadata.name, given]])[0]?.addresses)

test('a range hands out its addresses in order, without the first and the IPv4 broadcast address', () => {
  const range = new AddressRange('10.0.0.0/30')
  range.reserve(Uint8Array.of(10, 0, 0, 1))
  assert.equal(
    range.take(() => true),
    '10.0.0.2',
  )
  assert.equal(
    range.take(() => true),
    undefined,
  )
  assert.throws(() => new AddressRange('10.0.0.0'), RangeError)
})

test('each distinct host gets one address of each family', () => {
  assert.deepEqual(one(allocator(), entry('e', ['a.com', 'b.com', 'a.com'])), [
    'a.com 240.240.0.1',
    'a.com 2001:2::1',
    'b.com 240.240.0.2',
    'b.com 2001:2::2',
  ])
})

test('nothing is written where nothing differs, also before a write has come back', () => {
  const of = allocator()
  const first = of.update([['e', entry('e', ['a.com'])]])
  assert.equal(first.length, 1)
  const again = of.update([['e', entry('e', ['a.com'])]])
  assert.deepEqual(again[0]?.addresses, first[0]?.addresses)
  const written = { ...entry('e', ['a.com']), status: { addresses: first[0]?.addresses ?? [] } }
  assert.deepEqual(of.update([['e', written]]), [])
})

test('an address the user wrote down is taken from who has it, and never handed out', () => {
  const of = allocator()
  one(of, entry('auto', ['a.com']))
  const writes = of.update([
    ['user', entry('user', ['b.com'], { spec: { addresses: ['240.240.0.1', '240.240.0.2/31'] } })],
  ])
  assert.deepEqual(
    writes.map(({ entry: { metadata }, addresses }) => [metadata.name, values(addresses)]),
    [['auto', ['a.com 240.240.0.4', 'a.com 2001:2::2']]],
  )
})

test('of two automatic holders the older keeps the address', () => {
  const of = allocator()
  const status = { addresses: [{ host: 'x.com', value: '240.240.0.1' }] }
  const writes = of.update([
    ['young', entry('young', ['x.com'], { created: '2026-02', status })],
    ['old', entry('old', ['x.com'], { created: '2026-01', status })],
  ])
  assert.deepEqual(
    writes.map(({ entry: { metadata } }) => metadata.name),
    ['young'],
  )
})

test('an entry that takes no automatic addresses any more is cleared', () => {
  const status = { addresses: [{ host: 'x.com', value: '240.240.0.1' }] }
  assert.deepEqual(one(allocator(), entry('e', ['x.com'], { spec: { resolution: 'NONE' }, status })), [])
})

test('an address that was given up is not handed out again, not even one found with an entry that takes none', () => {
  const of = allocator()
  const status = { addresses: [{ host: 'x.com', value: '240.240.0.1' }] }
  const writes = of.update([
    ['never', entry('never', ['x.com'], { spec: { resolution: 'NONE' }, status })],
    ['new', entry('new', ['y.com'], { created: '2026-01' })],
  ])
  const written = Object.fromEntries(writes.map((write) => [write.entry.metadata.name, values(write.addresses)]))
  assert.deepEqual(written, { never: [], new: ['y.com 240.240.0.2', 'y.com 2001:2::1'] })
  of.update([['new', undefined]])
  assert.deepEqual(one(of, entry('next', ['y.com'])), ['y.com 240.240.0.3', 'y.com 2001:2::2'])
})

test('an entry that says false, in any case, takes no addresses; wildcards only where they are resolved per request', () => {
  const labelled = (value: string) => {
    const given = entry('e', ['x.com'])
    const labels = { 'networking.istio.io/enable-autoallocate-ip': value }
    return one(allocator(), { ...given, metadata: { ...given.metadata, labels } })
  }
  assert.deepEqual([labelled('false'), labelled('False')], [undefined, undefined])
  assert.deepEqual(labelled('true'), ['x.com 240.240.0.1', 'x.com 2001:2::1'])
  assert.deepEqual(one(allocator(), entry('e', ['*.x.com', 'x.com'])), ['x.com 240.240.0.1', 'x.com 2001:2::1'])
  const dynamic = entry('e', ['*.x.com'], { spec: { hosts: ['*.x.com'], resolution: 'DYNAMIC_DNS' } })
  assert.deepEqual(one(allocator(), dynamic), ['*.x.com 240.240.0.1', '*.x.com 2001:2::1'])
})

test('addresses are kept by the hosts that stay, and new ones are only for new hosts', () => {
  const of = allocator()
  const first = of.update([['e', entry('e', ['a.com', 'b.com'])]])[0]
  assert.ok(first)
  const back = { status: { addresses: first.addresses } }
  assert.deepEqual(one(of, entry('e', ['b.com', 'a.com'], back)), undefined)
  assert.deepEqual(one(of, entry('e', ['c.com', 'b.com'], back)), [
    'c.com 240.240.0.3',
    'c.com 2001:2::3',
    'b.com 240.240.0.2',
    'b.com 2001:2::2',
  ])
})

test('a range without room is told of, and the other family is still allocated', () => {
  const exhausted: string[] = []
  const hosts = ['1.com', '2.com', '3.com', '4.com', '5.com', '6.com', '7.com']
  const given = one(allocator(exhausted), entry('e', hosts)) ?? []
  assert.deepEqual(exhausted, ['ns/e 7.com 240.240.0.0/29'])
  assert.deepEqual(given.slice(-1), ['7.com 2001:2::7'])
})

test('a write that fails is tried again, and reported after the last try', async () => {
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  const inputs = createAmbientInputs(graph)
  const patches: unknown[] = []
  const failures: string[] = []
  let refuse = 2
  const feed = inputs.feed('c1', 'serviceEntries')
  feed.set(entry('e', ['a.com']))
  const done = Promise.withResolvers<void>()
  const running = runAddressAllocation({
    ...prefixes,
    exhausted: () => {},
    entries: inputs.collections.serviceEntries,
    delay: async () => {},
    failed: ({ metadata }) => {
      failures.push(metadata.name)
      done.resolve()
    },
    patchStatus: async ({ metadata }, patch) => {
      if (metadata.name === 'never') throw new Error('refused')
      refuse -= 1
      if (refuse >= 0) throw new Error('conflict')
      patches.push(patch)
    },
  })
  feed.set(entry('never', ['b.com'], { metadata: { name: 'never', namespace: 'ns', resourceVersion: '5' } }))
  await done.promise
  await running.close()
  assert.deepEqual(patches, [
    [
      {
        op: 'add',
        path: '/status',
        value: {
          addresses: [
            { host: 'a.com', value: '240.240.0.1' },
            { host: 'a.com', value: '2001:2::1' },
          ],
        },
      },
    ],
  ])
  assert.deepEqual(failures, ['never'])
})

test('an allocation that ends while it waits for the next try simply ends', async () => {
  const inputs = createAmbientInputs(createGraph({ report: (report) => assert.fail(JSON.stringify(report)) }))
  inputs.feed('c1', 'serviceEntries').set(entry('e', ['a.com']))
  const waiting = Promise.withResolvers<void>()
  const stop = new AbortController()
  const running = runAddressAllocation({
    ...prefixes,
    exhausted: () => {},
    entries: inputs.collections.serviceEntries,
    failed: () => assert.fail('not at last'),
    patchStatus: () => Promise.reject(new Error('refused')),
    delay: (milliseconds) => {
      waiting.resolve()
      return pause(milliseconds, undefined, { signal: stop.signal })
    },
  })
  await waiting.promise
  stop.abort()
  await running.close()
})
