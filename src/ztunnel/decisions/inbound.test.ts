import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { meshOf } from '../../../test/support/mesh.ts'
import type { Workload } from '../model.ts'
import { decideInbound, decidePlaintext } from './inbound.ts'
import type { InboundDecision } from './types.ts'

const state = meshOf(`
workloads:
- {uid: local, name: local, namespace: ns, network: net, workloadIps: [10.0.0.2], services: {ns/b.example: {80: 8080}, ns/a.example: {}}}
- {uid: client, name: client, namespace: ns, network: net, workloadIps: [10.0.0.1], services: {}}
services:
- {name: b, namespace: ns, hostname: b.example, vips: [], ports: {80: 0}}
- {name: a, namespace: ns, hostname: a.example, vips: [], ports: {80: 8080}}`)

const options = {
  network: 'net',
  illegalPorts: new Set([15001, 15006, 15008]),
  localhostAppTunnel: true,
  readBaggage: true,
}

function decide(
  request: { authority?: string; headers?: Record<string, string>; local?: Workload; from?: string; to?: string } = {},
  given: Partial<typeof options> = {},
): InboundDecision {
  const local = request.local ?? state.workload('local')
  assert.ok(local)
  return decideInbound(
    state,
    {
      method: 'CONNECT',
      authority: request.authority ?? '10.0.0.2:8080',
      local,
      from: { ip: request.from ?? '10.0.0.1', port: 4000 },
      connectionTo: { ip: request.to ?? '10.0.0.2', port: 15008 },
      headers: request.headers ?? {},
    },
    { ...options, ...given },
  )
}

const connected = (decision: InboundDecision) => {
  assert.equal(decision.kind, 'connect')
  return decision as Extract<InboundDecision, { kind: 'connect' }>
}

test('the service is the one the client names, if the workload is a member of it; else the first with the port', () => {
  assert.equal(connected(decide()).service?.name, 'b')
  assert.equal(connected(decide({ headers: { forwarded: 'for="10.0.0.1:1";host=a.example' } })).service?.name, 'a')
  assert.equal(connected(decide({ headers: { forwarded: 'host=stranger.example' } })).service?.name, 'b')
})

test('the client of another network is not looked up by its address', () => {
  const headers = { baggage: 'service.name=far', 'x-forwarded-network': 'NET' }
  assert.equal(connected(decide({ headers })).sourceWorkload?.uid, 'client')
  const remote = connected(decide({ headers: { ...headers, 'x-forwarded-network': 'other' } }))
  assert.deepEqual([remote.fromGateway, remote.sourceWorkload, remote.baggage?.serviceName], [true, undefined, 'far'])
})

test('the source address is kept, unless the client calls itself', () => {
  assert.ok(connected(decide()).preserveSource)
  assert.ok(!connected(decide({ from: '10.0.0.2' })).preserveSource)
})

test('an application behind the PROXY protocol is reached on loopback, or at its own address where that is switched off', () => {
  const local = state.workload('local')
  assert.ok(local)
  const behindProxy: Workload = {
    ...local,
    addresses: ['10.0.0.2', 'fd00::2'],
    applicationTunnel: { protocol: 'PROXY', port: 9000 },
  }
  const reached = (localhostAppTunnel: boolean, to = '10.0.0.2') => {
    const authority = to.includes(':') ? `[${to}]:8080` : `${to}:8080`
    const decision = connected(decide({ local: behindProxy, authority, to }, { localhostAppTunnel }))
    assert.deepEqual(decision.upstream, { ip: to, port: 9000 }, 'it is the same destination to policies and the log')
    assert.deepEqual(decision.proxyProtocol?.destination, { ip: to, port: 8080 })
    return [decision.connectTo, decision.preserveSource]
  }
  assert.deepEqual(reached(true), [{ ip: '127.0.0.1', port: 9000 }, false])
  assert.deepEqual(reached(true, 'fd00::2'), [{ ip: '::1', port: 9000 }, false])
  assert.deepEqual(reached(false), [{ ip: '10.0.0.2', port: 9000 }, true])
  assert.deepEqual(reached(false, 'fd00::2'), [{ ip: 'fd00::2', port: 9000 }, true])
})

test('an application without the PROXY protocol is never sought on loopback', () => {
  for (const localhostAppTunnel of [true, false]) {
    const decision = connected(decide({}, { localhostAppTunnel }))
    assert.deepEqual([decision.connectTo, decision.preserveSource], [{ ip: '10.0.0.2', port: 8080 }, true])
  }
})

test('an application tunnel to one of our own ports is refused', () => {
  const local = state.workload('local')
  assert.ok(local)
  const decision = decide({ local: { ...local, applicationTunnel: { protocol: 'NONE', port: 15008 } } })
  assert.deepEqual(decision, { kind: 'reject', status: 503, error: 'attempted recursive call to ourselves' })
})

test('a service without address cannot be announced to an application behind the PROXY protocol', () => {
  const local = state.workload('local')
  assert.ok(local)
  const tunnelled = { ...local, applicationTunnel: { protocol: 'PROXY' as const } }
  const decision = decide({ local: tunnelled, authority: 'a.example:80' })
  assert.deepEqual(decision, {
    kind: 'reject',
    status: 503,
    error: 'requested service a.example found, but has no IP addresses',
  })
})

test('plaintext to our own ports is refused, other plaintext goes where it was sent', () => {
  const local = state.workload('local')
  assert.ok(local)
  const request = { local, from: { ip: '10.0.0.1', port: 1 }, to: { ip: '10.0.0.2', port: 8080 } }
  const decision = decidePlaintext(state, request, options)
  assert.equal(decision.kind === 'connect' && decision.service?.name, 'b')
  assert.equal(decidePlaintext(state, { ...request, to: { ip: '10.0.0.2', port: 15006 } }, options).kind, 'reject')
})

test('whatever a peer sends as authority and headers ends in a decision', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (authority, forwarded, baggage) => {
      assert.ok(['connect', 'reject'].includes(decide({ authority, headers: { forwarded, baggage } }).kind))
    }),
  )
})

test('a decision says why', () => {
  const local = state.workload('local')
  assert.ok(local)
  const reasonOf = (decision: InboundDecision | ReturnType<typeof decidePlaintext>) =>
    decision.kind === 'connect' ? decision.reason : decision.error
  const hosted = meshOf(
    '{workloads: [{uid: h, name: h, namespace: ns, hostname: h.example, network: net, workloadIps: [10.0.0.2], services: {}}], services: []}',
  )
  const of = (authority: string, view = state, owner = local) =>
    reasonOf(
      decideInbound(
        view,
        {
          method: 'CONNECT',
          authority,
          local: owner,
          from: { ip: '10.0.0.1', port: 4000 },
          connectionTo: { ip: '10.0.0.2', port: 15008 },
          headers: {},
        },
        options,
      ),
    )
  assert.equal(of('10.0.0.2:8080'), 'addressed by IP')
  assert.equal(of('a.example:80'), 'addressed by the host name of service a.example')
  assert.equal(of('h.example:80', hosted, hosted.workload('h')), 'addressed by the host name of workload h')
  assert.equal(of('10.0.0.3:8080'), 'ip mismatch: 10.0.0.2 != 10.0.0.3')
  assert.equal(of('b.example:81'), 'requested service b.example:81 found, but cannot resolve port')
  assert.equal(of('c.example:80'), 'no service or workload for hostname: c.example')
  const plain = (port: number) =>
    reasonOf(
      decidePlaintext(state, { local, from: { ip: '10.0.0.1', port: 1 }, to: { ip: '10.0.0.2', port } }, options),
    )
  assert.equal(plain(80), 'plaintext to the workload itself')
  assert.equal(plain(15001), 'attempted recursive call to ourselves')
})
