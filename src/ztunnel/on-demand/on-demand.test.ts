import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { workload as proto } from '../../proto/index.ts'
import { routeOutbound } from '../decisions/index.ts'
import { addressTypeUrl, createDeltaReceiver, createMeshState, ipToBytes, type MeshView } from '../state/index.ts'
import { createOnDemandAddresses, decideOnDemand, type OnDemandAddresses, recordMisses } from './index.ts'

type AddressInit = MessageInitShape<typeof proto.AddressSchema>

function world(options: { readonly mostKept?: number } = {}) {
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  const subscribed: string[] = []
  const unsubscribed: string[] = []
  const onDemand = createOnDemandAddresses({
    view: state,
    subscribe: (key) => void subscribed.push(key),
    unsubscribe: (key) => void unsubscribed.push(key),
    ...options,
  })
  const push = (given: {
    put?: Record<string, AddressInit>
    aliases?: readonly string[]
    removed?: readonly string[]
  }) => {
    const resources = Object.entries(given.put ?? {}).map(([name, init]) => ({
      name,
      ...(given.aliases === undefined ? {} : { aliases: given.aliases }),
      version: '1',
      body: toBinary(proto.AddressSchema, create(proto.AddressSchema, init)),
    }))
    const update = { typeUrl: addressTypeUrl, resources, removed: given.removed ?? [] }
    receive(update)
    onDemand.received(update)
  }
  return { state, subscribed, unsubscribed, onDemand, push }
}

const pod = (ip: string, more: MessageInitShape<typeof proto.WorkloadSchema> = {}): AddressInit => ({
  type: {
    case: 'workload',
    value: { uid: `uid-${ip}`, name: `w-${ip}`, namespace: 'shop', addresses: [ipToBytes(ip)], ...more },
  },
})
const bound = { timeoutMs: 1000 }

test('all who ask for one key at the same time share a request and are woken together', async () => {
  const { onDemand, subscribed, push } = world()
  const asks = Array.from({ length: 50 }, () => onDemand.ask('/10.0.0.1', bound))
  assert.deepEqual(subscribed, ['/10.0.0.1'])
  push({ put: { 'uid-10.0.0.1': pod('10.0.0.1') } })
  await Promise.all(asks)
  await onDemand.ask('/10.0.0.1', bound)
  assert.deepEqual(subscribed, ['/10.0.0.1'])
})

test('the answer may name the key as an alias, or be that it is nothing', async () => {
  const { onDemand, push, subscribed } = world()
  const byAlias = onDemand.ask('other/10.0.0.1', bound)
  push({ put: { 'uid-10.0.0.1': pod('10.0.0.1', { network: 'n' }) }, aliases: ['other/10.0.0.1'] })
  await byAlias
  const nothing = onDemand.ask('/10.0.0.9', bound)
  push({ removed: ['/10.0.0.9'] })
  await nothing
  await onDemand.ask('/10.0.0.9', bound)
  assert.deepEqual(subscribed, ['other/10.0.0.1', '/10.0.0.9'])
})

test('no answer ends the wait; a late one still counts, and the request is not sent again', async () => {
  const { onDemand, push, subscribed } = world()
  await assert.rejects(onDemand.ask('/10.0.0.1', { timeoutMs: 5 }), { code: 'NO_ANSWER' })
  const again = onDemand.ask('/10.0.0.1', bound)
  push({ removed: ['/10.0.0.1'] })
  await again
  assert.deepEqual(subscribed, ['/10.0.0.1'])
})

test('giving up ends one wait and not those of others', async () => {
  const { onDemand, push } = world()
  const leaving = new AbortController()
  const one = onDemand.ask('/10.0.0.1', { ...bound, signal: leaving.signal })
  const other = onDemand.ask('/10.0.0.1', bound)
  leaving.abort()
  await assert.rejects(one, { code: 'ABORTED' })
  push({ put: { x: pod('10.0.0.1') } })
  await other
})

test('what was known and is gone counts as known to be nothing: the subscription goes on', async () => {
  const { onDemand, push, subscribed, state } = world()
  const asked = onDemand.ask('/10.0.0.1', bound)
  push({ put: { 'uid-10.0.0.1': pod('10.0.0.1') } })
  await asked
  push({ removed: ['uid-10.0.0.1'] })
  await onDemand.ask('/10.0.0.1', bound)
  push({ put: { 'uid-10.0.0.1': pod('10.0.0.1') } })
  assert.notEqual(state.workloadByAddress('', '10.0.0.1'), undefined)
  assert.equal(subscribed.length, 1)
})

test('subscriptions to nothing are bounded', async () => {
  const { onDemand, push, unsubscribed } = world({ mostKept: 10 })
  for (let last = 1; last <= 30; last += 1) {
    const asked = onDemand.ask(`/10.0.1.${last}`, bound)
    if (last === 1) push({ put: { known: pod('10.0.1.1') } })
    else push({ removed: [`/10.0.1.${last}`] })
    await asked
  }
  assert.equal(unsubscribed.length, 20)
  assert.equal(unsubscribed.includes('/10.0.1.1'), false)
})

test('a decision asks for the destination, then for its waypoint, and never takes what is unanswered as unmeshed', async () => {
  const { state, onDemand, push } = world()
  push({ put: { me: pod('10.0.0.1', { uid: 'me', tunnelProtocol: proto.TunnelProtocol.HBONE }) } })
  const source = state.workload('me')
  assert.ok(source)
  const route = (view: MeshView) =>
    routeOutbound(
      view,
      { source, from: { ip: '10.0.0.1', port: 1 }, to: { ip: '10.0.0.2', port: 80 } },
      { network: '', hbonePort: 15008, illegalPorts: new Set(), random: () => 0 },
    )
  const asked: string[] = []
  const answers: Record<string, AddressInit> = {
    '/10.0.0.2': pod('10.0.0.2', {
      tunnelProtocol: proto.TunnelProtocol.HBONE,
      waypoint: {
        hboneMtlsPort: 15008,
        destination: { case: 'address', value: { network: '', address: ipToBytes('10.0.0.3') } },
      },
    }),
    '/10.0.0.3': pod('10.0.0.3', { tunnelProtocol: proto.TunnelProtocol.HBONE }),
  }
  const server: Pick<OnDemandAddresses, 'ask'> = {
    ask(key, options) {
      asked.push(key)
      const done = onDemand.ask(key, options)
      const found = answers[key]
      if (found !== undefined) setImmediate(() => push({ put: { [`r${key}`]: found } }))
      return done
    },
  }
  const decision = await decideOnDemand(state, route, { onDemand: server, timeoutMs: 1000, unanswered: 'fail' })
  assert.deepEqual(asked, ['/10.0.0.2', '/10.0.0.3'])
  assert.ok(decision.kind === 'hbone' && decision.target.kind === 'address')
  assert.equal(decision.target.address.ip, '10.0.0.3')

  push({ removed: ['uid-10.0.0.2'] })
  const mute = createOnDemandAddresses({ view: state, subscribe: () => {}, unsubscribe: () => {} })
  const unanswered = { onDemand: mute, timeoutMs: 5 }
  await assert.rejects(decideOnDemand(state, route, { ...unanswered, unanswered: 'fail' }), { code: 'NO_ANSWER' })
  assert.equal((await decideOnDemand(state, route, { ...unanswered, unanswered: 'decide' })).kind, 'tcp')
})

test('a view that is complete notes nothing', () => {
  const { state, push } = world()
  push({ put: { x: pod('10.0.0.1') } })
  const { view, missed } = recordMisses(state)
  view.workloadByAddress('', '10.0.0.1')
  view.serviceByVip('', '10.0.0.2')
  assert.equal(missed.size, 0)
  view.workloadByAddress('', '10.0.0.2')
  assert.deepEqual([...missed], ['/10.0.0.2'])
})
