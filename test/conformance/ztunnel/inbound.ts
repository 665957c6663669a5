// Topic inbound-connect: the decision, then policies, as the data path asks them.
import assert from 'node:assert/strict'
import { authorize, decideInbound, parseSpiffeId } from '../../../src/ztunnel/decisions/index.ts'
import { formatAddress, serviceKey } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, socketAddress, type TopicRunner } from './topic.ts'

export const runInbound: TopicRunner = (one, defaults) => {
  const { workloads, services } = defaults.base
  const patched = {
    workloads: workloads.map((workload: Data) => ({ ...workload, ...one.patch?.workloads?.[workload.uid] })),
    services: services.map((service: Data) => ({ ...service, ...one.patch?.services?.[serviceKey(service)] })),
    policies: one.policies ?? [],
  }
  const view = meshOf(undefined, patched)
  const local = view.workload(one.local)
  assert.ok(local)
  const request = { ...defaults.request, ...one.request }
  const peerIdentity = parseSpiffeId(request.clientIdentity)
  const from = socketAddress(request.client)
  const decision = decideInbound(
    view,
    {
      method: request.method,
      authority: request.authority,
      local,
      from,
      connectionTo: socketAddress(one.connectionTo),
      ...(peerIdentity === undefined ? {} : { peerIdentity }),
      headers: request.headers,
    },
    {
      network: defaults.proxy.network,
      illegalPorts: new Set(defaults.proxy.illegalPorts),
      localhostAppTunnel: defaults.proxy.localhostAppTunnel,
      readBaggage: true,
    },
  )
  const { expect } = one
  if (decision.kind === 'reject') {
    assert.equal(decision.status, expect.status)
    assert.ok(decision.error.includes(expect.error), decision.error)
    return
  }
  const verdict = authorize(view, {
    destinationWorkload: local,
    source: from,
    destination: decision.upstream,
    ...(peerIdentity === undefined ? {} : { identity: peerIdentity }),
  })
  if (!verdict.allowed) {
    assert.equal(expect.status, 401)
    assert.equal(`connection closed due to policy rejection: ${verdict.reason}`, expect.error)
    return
  }
  if (one.upstreamConnect === undefined) assert.equal(expect.status, 200)
  const target = decision.proxyProtocol === undefined ? null : formatAddress(decision.proxyProtocol.destination)
  const actual: Data = { upstream: formatAddress(decision.upstream), connectTo: formatAddress(decision.connectTo) }
  if (expect.tunnelTarget !== undefined) assert.equal(target, expect.tunnelTarget)
  for (const key of ['upstream', 'connectTo']) {
    if (expect[key] !== undefined) assert.equal(actual[key], expect[key], key)
  }
}
