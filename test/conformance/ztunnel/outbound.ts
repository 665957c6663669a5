// Topic outbound-routing.
import assert from 'node:assert/strict'
import { type OutboundDecision, routeOutbound } from '../../../src/ztunnel/decisions/index.ts'
import { formatAddress, serviceKey } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, seededRandom, socketAddress, type TopicRunner } from './topic.ts'

const protocols = { tcp: 'TCP', hbone: 'HBONE', 'double-hbone': 'DOUBLEHBONE' } as const

export const runOutbound: TopicRunner = (one, defaults) => {
  const proxy = { ...defaults.proxy, ...one.proxy }
  const view = meshOf(proxy.node, defaults.base, one.state)
  const source = view.localWorkload(one.source ?? defaults.source)
  assert.ok(source)
  const random = seededRandom()
  for (let run = 0; run < (one.repeat ?? 1); run += 1) {
    const decision = routeOutbound(
      view,
      { source, from: { ip: one.from, port: 1234 }, to: socketAddress(one.to) },
      { network: proxy.network, hbonePort: proxy.hbonePort, illegalPorts: new Set(proxy.illegalPorts), random },
    )
    compare(decision, one.expect)
  }
}

function compare(decision: OutboundDecision, expect: Data): void {
  if (expect.error !== undefined || decision.kind === 'refuse') {
    const error = decision.kind === 'refuse' ? decision.error : JSON.stringify(decision)
    assert.ok(error.includes(expect.error), `expected ${expect.error}, got ${error}`)
    return
  }
  assert.equal(decision.target.kind, 'address')
  const actual: Data = {
    protocol: protocols[decision.kind],
    destination: decision.target.kind === 'address' ? formatAddress(decision.target.address) : undefined,
    hboneTarget: decision.kind === 'tcp' ? null : decision.authority,
    destinationWorkload: decision.destinationWorkload?.uid ?? null,
    service: decision.service === undefined ? null : serviceKey(decision.service),
    expectedIdentities: decision.kind === 'tcp' ? [] : [...decision.expectedIdentities].sort(),
    finalIdentities: decision.kind === 'double-hbone' ? [...decision.finalIdentities].sort() : [],
  }
  for (const [key, value] of Object.entries(expect)) {
    if (key === 'expectedIdentities' && decision.kind === 'tcp') continue
    assert.deepEqual(actual[key], Array.isArray(value) ? [...value].sort() : value, key)
  }
}
