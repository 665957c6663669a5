// Topic wire-formats.
import assert from 'node:assert/strict'
import 'reflect-metadata'
import { Pkcs10CertificateRequest, SubjectAlternativeNameExtension } from '@peculiar/x509'
import { createCertificateRequest } from '../../../src/ca/client/index.ts'
import { expositionContentType, negotiateExposition } from '../../../src/observability/index.ts'
import {
  buildBaggage,
  buildForwarded,
  connectHeaders,
  encodeProxyHeader,
  parseAuthority,
  parseBaggage,
  parseForwardedHost,
  parseSpiffeId,
  parseTraceparent,
  responseHeaders,
} from '../../../src/ztunnel/decisions/index.ts'
import { formatAddress, ipFromBytes, parseLocalFile } from '../../../src/ztunnel/state/index.ts'
import { type Data, socketAddress, type TopicRunner } from './topic.ts'

const runs: Readonly<Record<string, (input: Data, one: Data) => void | Promise<void>>> = {
  'forwarded-build': (input, one) =>
    assert.equal(buildForwarded(socketAddress(input.client), input.serviceHostname ?? undefined), one.expect),
  'forwarded-parse': (input, one) => assert.equal(parseForwardedHost(input) ?? null, one.expect),
  'connect-headers': runConnectHeaders,
  'baggage-parse': (input, one) => {
    const baggage: Data = parseBaggage(input)
    for (const [key, value] of Object.entries(one.expect)) assert.equal(baggage[key] ?? null, value, key)
  },
  'baggage-build': (input, one) => assert.equal(buildBaggage(input), one.expect),
  'response-baggage': (input, one) => {
    const baggage = (status: number, enabled: boolean): string | null =>
      responseHeaders(input.workload, status, enabled).baggage ?? null
    assert.equal(baggage(200, true), one.expect['enabled-200'])
    assert.equal(baggage(200, false), one.expect['disabled-200'])
    assert.equal(baggage(503, true), one.expect['error-status'])
  },
  csr: runCsr,
  traceparent: (input, one) =>
    assert.deepEqual(
      input.map((value: string) => (parseTraceparent(value) === undefined ? 'new' : 'taken')),
      one.expect,
    ),
  'identity-parse': (input, one) =>
    assert.deepEqual(
      input.map((text: string) => parseSpiffeId(text) ?? null),
      one.expect,
    ),
  'authority-parse': (input, one) =>
    assert.deepEqual(
      input.map((text: string) => {
        const authority = parseAuthority(text)
        if (authority === undefined) return null
        if (authority.kind === 'address') return { address: formatAddress(authority.address) }
        return { hostname: authority.hostname, port: authority.port }
      }),
      one.expect,
    ),
  'proxy-protocol': (input, one) => {
    const header = encodeProxyHeader({
      source: socketAddress(input.client),
      destination: socketAddress(input.target),
      ...(input.identity === null ? {} : { peerIdentity: input.identity }),
    })
    assert.equal(header.toString('hex'), one.expectHex)
  },
  'content-type': (input, one) =>
    assert.deepEqual(
      input.map((accepts: string[]) => expositionContentType[negotiateExposition(accepts.join(', '))]),
      one.expect,
    ),
  'ip-bytes': (_, one) =>
    assert.deepEqual(
      one.inputHex.map((hex: string) => ipFromBytes(Buffer.from(hex, 'hex')) ?? null),
      one.expect,
    ),
}

export const runWireFormats: TopicRunner = async (one) => {
  const run = runs[one.kind]
  if (run === undefined) throw new Error(`unknown kind ${one.kind}`)
  await run(one.input, one)
}

function runConnectHeaders(input: Data, one: Data): void {
  const [source] = parseLocalFile(
    '{workloads: [{workloadIps: [], services: {}, namespace: n, clusterId: c}]}',
  ).workloads
  assert.ok(source)
  const trace = { traceId: '0'.repeat(32), spanId: '0'.repeat(16) }
  const common = { source, from: { ip: '10.0.0.1', port: 1 }, trace }
  const actual: Data = {
    HBONE: connectHeaders(common),
    'DOUBLEHBONE-outer': connectHeaders(common),
    'DOUBLEHBONE-inner': connectHeaders({ ...common, forwardedNetwork: input.network }),
  }
  for (const [kind, expected] of Object.entries(one.expect as Data)) {
    const header = 'x-forwarded-network'
    assert.equal(actual[kind][header], (expected as Data)[header], kind)
  }
}

async function runCsr(input: Data, one: Data): Promise<void> {
  const [first, second] = await Promise.all([
    createCertificateRequest(input.identity),
    createCertificateRequest(input.identity),
  ])
  const request = new Pkcs10CertificateRequest(first.csrPem)
  assert.equal(one.expect.keyType, 'EC P-256')
  assert.deepEqual(request.publicKey.algorithm, { name: 'ECDSA', namedCurve: 'P-256' })
  assert.equal(request.subject, one.expect.subject)
  assert.deepEqual(
    Array.from(request.extensions, ({ type, critical, rawData }) => ({
      oid: type,
      critical,
      uris: new SubjectAlternativeNameExtension(rawData).names.toJSON().map(({ value }) => value),
    })),
    one.expect.extensions,
  )
  assert.equal(one.expect.signature, 'ecdsa-with-SHA256')
  assert.deepEqual(request.signatureAlgorithm, { name: 'ECDSA', hash: { name: 'SHA-256' } })
  assert.ok(await request.verify())
  assert.equal(first.privateKeyPem !== second.privateKeyPem, one.expect.freshKeyPerRequest)
}
