import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseAuthority } from './authority.ts'
import { buildBaggage, parseBaggage } from './baggage.ts'
import {
  buildForwarded,
  buildTraceparent,
  createTraceContexts,
  parseForwardedHost,
  parseTraceparent,
} from './headers.ts'
import { parseSpiffeId, spiffeId } from './identity.ts'
import { encodeProxyHeader } from './proxy-protocol.ts'

test('a trace context is read back from its header, and each is new', () => {
  const next = createTraceContexts()
  const trace = next()
  assert.deepEqual(parseTraceparent(buildTraceparent(trace)), trace)
  const others = Array.from({ length: 200 }, next)
  assert.equal(new Set([trace, ...others].map(({ traceId, spanId }) => traceId + spanId)).size, 201)
})

test('an IPv6 client is bracketed in the forwarded header, and quotes around the host are taken off', () => {
  assert.equal(buildForwarded({ ip: '::1', port: 80 }), 'for="[::1]:80"')
  assert.equal(parseForwardedHost('for="[::1]:80"; host="a.example"'), 'a.example')
  assert.equal(parseForwardedHost('host='), undefined)
})

test('baggage of a workload is read back', () => {
  const workload = {
    clusterId: 'c',
    namespace: 'n',
    workloadType: 'job',
    workloadName: 'w',
    canonicalName: 's',
    canonicalRevision: 'v1',
    locality: { region: 'r', zone: 'z' },
  }
  assert.deepEqual(parseBaggage([buildBaggage(workload)]), {
    clusterId: 'c',
    namespace: 'n',
    workloadType: 'job',
    workloadName: 'w',
    serviceName: 's',
    revision: 'v1',
    region: 'r',
    zone: 'z',
  })
  assert.deepEqual(parseBaggage([`service.name=${'x'.repeat(300)}`]), {})
})

test('the PROXY protocol names no addresses when their families differ', () => {
  const header = encodeProxyHeader({
    source: { ip: '10.0.0.1', port: 1 },
    destination: { ip: 'fd00::1', port: 2 },
    peerIdentity: 'spiffe://td/ns/n/sa/s',
  })
  assert.equal(header[13], 0)
  assert.equal(header.readUInt16BE(14), header.length - 16)
  assert.equal(header.subarray(19).toString(), 'spiffe://td/ns/n/sa/s')
})

test('no header text makes a reader throw, and what is read is what was written', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      parseBaggage([text])
      parseForwardedHost(text)
      parseTraceparent(text)
      const identity = parseSpiffeId(text)
      if (identity !== undefined) assert.equal(spiffeId(identity), text)
      const authority = parseAuthority(text)
      if (authority?.kind === 'hostname') assert.ok(text.toLowerCase().startsWith(authority.hostname.toLowerCase()))
    }),
  )
})
