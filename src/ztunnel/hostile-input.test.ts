// Whatever comes in from a peer, the node agent, the control plane or a pod: decoders answer with their own errors and decisions
// with a decision, in time.
import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { makeCa, makeLeaf } from '../../test/support/ca.ts'
import { meshOf } from '../../test/support/mesh.ts'
import { CertificateError, certificateFromAnswer } from '../ca/client/index.ts'
import { security, workload, zds } from '../proto/index.ts'
import { ConfigError, loadConfig } from './config/index.ts'
import {
  authorize,
  decideInbound,
  encodeProxyHeader,
  parseAuthority,
  parseBaggage,
  parseForwardedHost,
  parseTraceparent,
  routeOutbound,
} from './decisions/index.ts'
import { DnsError, parseResolvConf } from './dns/index.ts'
import { readMessage, readRecords } from './dns/message.ts'
import { decodeAgentPacket, ZdsPacketError } from './pods/zds-messages.ts'
import { firstAddress } from './socks5/index.ts'
import { addressTypeUrl, authorizationTypeUrl, createDeltaReceiver, createMeshState, ipToBytes } from './state/index.ts'

const limits = { numRuns: 3000, interruptAfterTimeLimit: 3000 }

/** Bytes of no shape, and valid ones that were changed, cut or joined. */
function hostile(...valid: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const change = fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.nat(255))
  const mutated = fc
    .tuple(fc.constantFrom(...valid), fc.array(change, { maxLength: 6 }), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([bytes, changes, kept]) => {
      const copy = Uint8Array.from(bytes)
      for (const [at, value] of changes) copy[Math.floor(at * copy.length)] = value
      return kept < 0.3 ? copy.subarray(0, Math.floor(kept * 3 * copy.length)) : copy
    })
  const joined = fc.tuple(mutated, mutated).map(([a, b]) => Uint8Array.of(...a, ...b))
  return fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated, joined)
}

const ip = fc.oneof(
  fc.ipV4(),
  fc.ipV6().filter((text) => !text.includes('%')),
)
const address = fc.record({ ip: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.1.0.1', 'fd00::1'), port: fc.nat(65_535) })
const wild = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({
    unit: fc.constantFrom(':', '[', ']', '.', ',', ';', '=', '"', '%', '-', '0', '9', 'a', 'host', ' '),
    maxLength: 80,
  }),
  fc.constantFrom('10.0.0.1:80', '[fd00::1]:80', 's.ns.svc.cluster.local:80', 'w:99999', `${'a'.repeat(10_000)}:1`),
)

test('packets of the node agent', () => {
  const say = (payload: zds.WorkloadRequest['payload']) =>
    toBinary(zds.WorkloadRequestSchema, create(zds.WorkloadRequestSchema, { payload }))
  const valid = [
    say({ case: 'keep', value: create(zds.KeepWorkloadSchema, { uid: 'a' }) }),
    say({ case: 'del', value: create(zds.DelWorkloadSchema, { uid: 'a' }) }),
    say({ case: 'snapshotSent', value: create(zds.SnapshotSentSchema) }),
    say({
      case: 'add',
      value: create(zds.AddWorkloadSchema, { uid: 'a', workloadInfo: { name: 'n', namespace: 's' } }),
    }),
  ]
  fc.assert(
    fc.property(hostile(...valid), (message) => {
      try {
        assert.notEqual(decodeAgentPacket({ message, descriptors: [] }).kind, 'add')
      } catch (error) {
        assert.ok(error instanceof ZdsPacketError)
      }
    }),
    limits,
  )
})

test('descriptors that come with packets are handed over or closed, never lost', () => {
  const add = toBinary(
    zds.WorkloadRequestSchema,
    create(zds.WorkloadRequestSchema, {
      payload: { case: 'add', value: create(zds.AddWorkloadSchema, { uid: 'a', workloadInfo: { name: 'n' } }) },
    }),
  )
  const isOpen = (descriptor: number): boolean => {
    try {
      return fstatSync(descriptor).isFile()
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(fc.oneof(fc.constant(add), hostile(add)), fc.nat(3), (message, count) => {
      const descriptors = Array.from({ length: count }, () => openSync('/etc/hosts', 'r'))
      try {
        const said = decodeAgentPacket({ message, descriptors })
        assert.deepEqual(descriptors, said.kind === 'add' ? [said.namespaceFd] : [])
        assert.ok(descriptors.every(isOpen))
        for (const descriptor of descriptors) closeSync(descriptor)
      } catch (error) {
        assert.ok(error instanceof ZdsPacketError, String(error))
        assert.ok(!descriptors.some(isOpen))
      }
    }),
    { ...limits, numRuns: 1000 },
  )
})

test('pushes of the control plane: bad ones are rejected by name, and decisions over the rest are decisions', () => {
  const gateway = {
    hbonePort: 15008,
    destination: { case: 'address' as const, value: { network: '', address: ipToBytes('10.0.0.2') } },
  }
  const addresses = [
    create(workload.AddressSchema, {
      type: {
        case: 'workload',
        value: create(workload.WorkloadSchema, {
          uid: 'a',
          name: 'a',
          namespace: 'ns',
          serviceAccount: 'a',
          addresses: [ipToBytes('10.0.0.1'), ipToBytes('fd00::1')],
          tunnelProtocol: 1,
          waypoint: gateway,
          authorizationPolicies: ['ns/p'],
          services: { 'ns/s': { ports: [{ servicePort: 80, targetPort: 8080 }] } },
        }),
      },
    }),
    create(workload.AddressSchema, {
      type: {
        case: 'service',
        value: create(workload.ServiceSchema, {
          name: 's',
          namespace: 'ns',
          hostname: 's',
          addresses: [{ address: ipToBytes('10.1.0.1') }, { address: ipToBytes('10.1.0.0'), length: 16 }],
          ports: [{ servicePort: 80, targetPort: 8080 }],
          waypoint: gateway,
          loadBalancing: { mode: 2, routingPreference: [1, 2] },
        }),
      },
    }),
  ].map((message) => toBinary(workload.AddressSchema, message))
  const policy = toBinary(
    security.AuthorizationSchema,
    create(security.AuthorizationSchema, {
      name: 'p',
      namespace: 'ns',
      scope: 1,
      groups: [
        {
          rules: [
            {
              matches: [
                {
                  namespaces: [{ matchType: { case: 'prefix', value: 'n' } }],
                  sourceIps: [{ address: ipToBytes('10.0.0.0'), length: 8 }],
                  destinationPorts: [80],
                },
              ],
            },
          ],
        },
      ],
    }),
  )
  const push = fc.record({
    addresses: fc.array(hostile(...addresses), { maxLength: 4 }),
    policies: fc.array(hostile(policy), { maxLength: 2 }),
    removed: fc.array(fc.constantFrom('a', 'ns/s', 'ns/p', '', '/', 'x/y/z'), { maxLength: 2 }),
  })
  const options = { network: '', hbonePort: 15008, illegalPorts: new Set([15008]), random: () => 0.5 }
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  const resourcesOf = (bodies: readonly Uint8Array[]) =>
    bodies.map((body, index) => ({ name: `r${index}`, version: '1', body }))
  fc.assert(
    fc.property(push, address, address, (given, from, to) => {
      for (const [typeUrl, bodies] of [
        [addressTypeUrl, given.addresses],
        [authorizationTypeUrl, given.policies],
      ] as const) {
        const verdict = receive({ typeUrl, resources: resourcesOf(bodies), removed: given.removed })
        for (const { name, reason } of verdict.rejected) assert.ok(/^r\d$/.test(name) && reason !== '')
      }
      for (const source of [...state.workloads()].slice(-3)) {
        const decision = routeOutbound(state, { source, from, to }, options)
        if (decision.kind === 'hbone') assert.ok(decision.expectedIdentities.length > 0)
        authorize(state, { destinationWorkload: source, source: from, destination: to })
      }
    }),
    { ...limits, numRuns: 1500 },
  )
})

test('headers and authorities of tunnels', () => {
  const mesh = meshOf(`
workloads: [{uid: w, name: w, namespace: ns, workloadIps: [10.0.0.1], services: {ns/s.ns.svc.cluster.local: {80: 8080}}, protocol: HBONE}]
services: [{name: s, namespace: ns, hostname: s.ns.svc.cluster.local, vips: [/10.1.0.1], ports: {80: 8080}}]`)
  const local = mesh.workload('w')
  assert.ok(local)
  const options = { network: '', illegalPorts: new Set([15008]), localhostAppTunnel: true, readBaggage: true }
  fc.assert(
    fc.property(wild, wild, wild, fc.constantFrom('CONNECT', 'GET', ''), (authority, one, two, method) => {
      const parsed = parseAuthority(authority)
      if (parsed?.kind === 'address') assert.ok(parsed.address.port <= 65_535)
      parseBaggage([one, two])
      parseForwardedHost(one)
      parseTraceparent(two)
      const headers = { forwarded: one, baggage: two, traceparent: one, 'x-forwarded-network': two }
      const from = { ip: '10.0.0.9', port: 1 }
      const request = { method, authority, local, from, connectionTo: { ip: '10.0.0.1', port: 15008 }, headers }
      const decision = decideInbound(mesh, request, options)
      // However it is asked for, the next hop is the pod itself.
      if (decision.kind === 'connect') assert.equal(decision.connectTo.ip, '10.0.0.1')
    }),
    limits,
  )
})

test('DNS messages, and answers of name servers', () => {
  const query = dnsPacket.encode({
    type: 'query',
    id: 1,
    questions: [{ name: 's.ns.svc.cluster.local', type: 'A' }],
    additionals: [{ type: 'OPT', name: '.', udpPayloadSize: 1232, flags: 0, options: [] } as never],
  })
  const answer = dnsPacket.encode({
    type: 'response',
    id: 1,
    questions: [{ name: 'a.example', type: 'A' }],
    answers: [{ type: 'A', name: 'a.example', data: '10.0.0.1', ttl: 5 }],
  })
  fc.assert(
    fc.property(hostile(query, answer), (bytes) => {
      try {
        readRecords(readMessage(bytes))
      } catch (error) {
        assert.ok(error instanceof DnsError)
      }
      firstAddress(bytes, 4)
    }),
    limits,
  )
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('nameserver', 'search', 'options', ' ', '\n', '1.1.1.1', ':', 'ndots:', '#') }),
      (text) => {
        parseResolvConf(text)
      },
    ),
    limits,
  )
})

test('headers of the PROXY protocol say how long they are', () => {
  fc.assert(
    fc.property(ip, ip, fc.nat(65_535), fc.option(fc.string({ maxLength: 300 })), (source, destination, port, peer) => {
      const bytes = encodeProxyHeader({
        source: { ip: source, port },
        destination: { ip: destination, port },
        ...(peer === null ? {} : { peerIdentity: peer }),
      })
      assert.equal(bytes.length, 16 + bytes.readUInt16BE(14))
      const addresses = { 0: 0, 17: 12, 33: 36 }[bytes.readUInt8(13)]
      assert.ok(addresses !== undefined)
      const rest = bytes.subarray(16 + addresses)
      if (peer === null) assert.equal(rest.length, 0)
      else assert.equal(rest.subarray(3).toString(), Buffer.from(peer).toString())
    }),
    limits,
  )
})

test('answers of a certificate authority', async () => {
  const ca = await makeCa({ name: 'root' })
  const identity = 'spiffe://cluster.local/ns/a/sa/b'
  const leaf = await makeLeaf(ca, [identity])
  const valid = [leaf.pem, ca.pem].map((pem) => Buffer.from(pem))
  const entry = hostile(...valid).map((bytes) => Buffer.from(bytes).toString('latin1'))
  fc.assert(
    fc.property(fc.array(fc.oneof(entry, fc.constantFrom(leaf.pem, ca.pem)), { maxLength: 4 }), (chain) => {
      try {
        const read = certificateFromAnswer({ identity, privateKeyPem: leaf.key, chain, checkIdentity: true })
        // What is let through is the certificate that was asked for.
        assert.equal(read.leaf.trim(), leaf.pem.trim())
      } catch (error) {
        assert.ok(error instanceof CertificateError && error.code === 'CA_ANSWER', String(error))
      }
    }),
    limits,
  )
})

test('settings: whatever they are, the start succeeds or names what is wrong', () => {
  const names = [
    'PROXY_MODE',
    'PROXY_WORKLOAD_INFO',
    'PROXY_CONFIG',
    'XDS_ADDRESS',
    'CA_ADDRESS',
    'XDS_HEADER_A',
    'LOCAL_XDS',
    'RUST_LOG',
    'LOG_FORMAT',
    'KEEPALIVE_TIME',
    'SECRET_TTL',
    'HTTP2_FRAME_SIZE',
    'ZTUNNEL_WORKER_THREADS',
    'ZTUNNEL_RESOURCE_CPU_LIMIT',
    'TERMINATION_GRACE_PERIOD_SECONDS',
    'ISTIO_META_DNS_PROXY_ADDR',
    'ISTIO_METAJSON_A',
    'PACKET_MARK',
    'ENABLE_ORIG_SRC',
  ]
  const value = fc.oneof(
    wild,
    fc.json(),
    fc.constantFrom(
      'true',
      'false',
      '0',
      '-1',
      '1e9',
      '50%',
      '1h30m',
      '500m',
      'a=debug',
      'shared',
      '[::1]:53',
      '{a: &a [*a]}',
    ),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 3 }), (env) => {
      try {
        const config = loadConfig({ env, machineCpus: 4, knowsKeyExchange: () => true, readFile: () => undefined })
        assert.ok(config.workerThreads >= 1 && config.drainDeadlineMs > 0)
      } catch (error) {
        assert.ok(error instanceof ConfigError, error instanceof Error ? error.stack : String(error))
        assert.notEqual(error.message, '')
      }
    }),
    limits,
  )
})
