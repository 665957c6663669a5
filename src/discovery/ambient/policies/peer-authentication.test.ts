import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toJson } from '@bufbuild/protobuf'
import { security } from '../../../proto/index.ts'
import { convertPeerPolicy, effectiveMode, oldest, peerPolicy, peerPolicyKeys } from './peer-authentication.ts'

function peer(mode: string | undefined, ports: Record<string, string> = {}, name = 'p', created?: string) {
  return peerPolicy({
    apiVersion: 'security.istio.io/v1',
    kind: 'PeerAuthentication',
    metadata: { name, namespace: 'ns1', ...(created === undefined ? {} : { creationTimestamp: created }) },
    spec: {
      selector: { matchLabels: { app: 'a' } },
      ...(mode === undefined ? {} : { mtls: { mode: mode as 'STRICT' } }),
      portLevelMtls: Object.fromEntries(
        Object.entries(ports).map(([port, word]) => [port, { mode: word as 'STRICT' }]),
      ),
    },
  })
}

const noIdentity = { notPrincipals: [{ presence: {} }] }
const staticKey = 'istio-system/istio_converted_static_strict'
const ownKey = 'ns1/converted_peer_authentication_p'

test('what a workload lists and what is sent agree, for every mode and port level', () => {
  const cases: readonly [
    base: 'STRICT' | 'PERMISSIVE' | 'DISABLE',
    ports: Record<string, string>,
    keys: string[],
    groups: unknown,
  ][] = [
    ['STRICT', {}, [staticKey], undefined],
    ['STRICT', { 9000: 'STRICT' }, [staticKey], undefined],
    ['STRICT', { 9000: 'UNSET' }, [staticKey], undefined],
    [
      'STRICT',
      { 9001: 'DISABLE', 9000: 'PERMISSIVE', 9002: 'STRICT' },
      [ownKey],
      [
        {
          rules: [
            { matches: [noIdentity] },
            { matches: [{ notDestinationPorts: [9000] }] },
            { matches: [{ notDestinationPorts: [9001] }] },
          ],
        },
      ],
    ],
    ['PERMISSIVE', {}, [], undefined],
    ['PERMISSIVE', { 9000: 'DISABLE' }, [], undefined],
    [
      'DISABLE',
      { 9001: 'STRICT', 9000: 'STRICT' },
      [ownKey],
      [9000, 9001].map((port) => ({ rules: [{ matches: [{ destinationPorts: [port], ...noIdentity }] }] })),
    ],
  ]
  for (const [base, ports, keys, groups] of cases) {
    const policy = peer('UNSET', ports)
    const message = convertPeerPolicy(base, policy)
    const json =
      message === undefined ? undefined : (toJson(security.AuthorizationSchema, message) as { groups: unknown })
    assert.deepEqual(peerPolicyKeys(base, policy, 'istio-system'), keys, `${base} ${JSON.stringify(ports)}`)
    assert.deepEqual(json?.groups, groups, `${base} ${JSON.stringify(ports)}`)
  }
})

test('the first level that says something decides, else PERMISSIVE', () => {
  assert.equal(effectiveMode(['UNSET', undefined, 'STRICT']), 'STRICT')
  assert.equal(effectiveMode(['DISABLE', 'STRICT', 'STRICT']), 'DISABLE')
  assert.equal(effectiveMode([undefined, 'UNSET']), 'PERMISSIVE')
})

test('of several policies the oldest counts, then the first by name', () => {
  const [a, b, c] = [
    peer('STRICT', {}, 'a', '2026-02'),
    peer('STRICT', {}, 'b', '2026-01'),
    peer('STRICT', {}, 'c', '2026-01'),
  ]
  assert.equal(oldest([a, c, b])?.name, 'b')
})

test('a mode that is no mode lets nothing unproven in', () => {
  assert.equal(peer('strict').mode, 'STRICT')
  assert.equal(peer(undefined).mode, 'UNSET')
})

test('a selector or a port that cannot be read is STRICT for all it may have meant', () => {
  const of = (spec: unknown) => {
    const metadata = { name: 'p', namespace: 'ns1' }
    const { mode, selector, ports } = peerPolicy({ apiVersion: '', kind: '', metadata, spec: spec as object })
    return { mode, selector, ports }
  }
  const strict = { mode: 'STRICT', selector: undefined, ports: [] }
  assert.deepEqual(of({ selector: 'app=a', mtls: { mode: 'DISABLE' } }), strict)
  assert.deepEqual(of({ selector: { matchLabels: { app: 1 } } }), strict)
  const selector = { app: 'a' }
  assert.deepEqual(of({ selector: { matchLabels: selector }, portLevelMtls: { http: { mode: 'STRICT' } } }), {
    ...strict,
    selector,
  })
})
