import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { makeCa, makeLeaf } from '../../../test/support/ca.ts'
import { certificateBlocks } from '../../util/index.ts'
import { createAuthority } from '../signing/authority.ts'
import { signingMaterial } from '../signing/material.ts'
import { createMeshTrustBundle } from './mesh-trust-bundle.ts'
import { fetchBundle, rootsOfBundle, TrustBundleError } from './spiffe-bundle.ts'

const root = await makeCa({ name: 'root' })
const other = await makeCa({ name: 'other' })
const material = signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' })
const authority = createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 3600 })
const base64 = (pem: string): string => pem.replaceAll(/-----[^-]+-----|\s/g, '')
const key = (pem: string, more: object = {}) => ({ kty: 'RSA', use: 'x509-svid', x5c: [base64(pem)], ...more })
const document = (...keys: readonly object[]): string => JSON.stringify({ spiffe_sequence: 1, keys })

describe('a bundle document', () => {
  test('has the roots of its keys for certificates; other keys do not count', () => {
    const roots = rootsOfBundle(document(key(root.pem), { use: 'jwt-svid', kid: 'a' }, key(other.pem)))
    assert.deepEqual(roots, [...certificateBlocks(root.pem), ...certificateBlocks(other.pem)])
  })

  for (const [text, reason] of [
    ['{', /expected JSON/],
    ['null', /expected an object with keys/],
    [document({ use: 'jwt-svid' }), /at least one key/],
    [document(key(root.pem, { x5c: [] })), /keys\[0\]\.x5c: expected exactly one/],
    [document(key(root.pem, { x5c: [base64(root.pem), base64(other.pem)] })), /expected exactly one/],
    [document(key(root.pem), key(root.pem, { x5c: ['AAAA'] })), /keys\[1\]\.x5c: no certificate/],
  ] as const) {
    test(`is refused as a whole: ${reason.source}`, () => {
      assert.throws(() => rootsOfBundle(text), { code: 'INVALID_TRUST_BUNDLE', message: reason })
    })
  }
})

describe('the address of a bundle document', { timeout: 20_000 }, () => {
  async function serve(t: TestContext, listener: RequestListener): Promise<string> {
    const { privateKey, chain } = await authority.issueServingCertificate(['localhost'], 3600)
    const server = createServer({ key: privateKey, cert: chain }, listener).listen(0, '127.0.0.1')
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server, 'listening')
    return `https://localhost:${(server.address() as AddressInfo).port}/bundle`
  }
  const signal = new AbortController().signal

  test('is read when its server is verified, and only then', async (t) => {
    const url = await serve(t, (_, response) => response.end(document(key(other.pem))))
    assert.deepEqual(await fetchBundle(url, signal, root.pem), certificateBlocks(other.pem))
    await assert.rejects(fetchBundle(url, signal, other.pem), TrustBundleError)
    await assert.rejects(fetchBundle(url, signal), TrustBundleError)
    await assert.rejects(fetchBundle(url.replace('https', 'http'), signal), /expected an https address/)
  })

  test('is refused when it answers with something else', async (t) => {
    const url = await serve(t, ({ url = '' }, response) => {
      if (url.endsWith('?long')) response.end(`"${'x'.repeat(2 * 1024 * 1024)}"`)
      else if (url.endsWith('?moved')) response.writeHead(302, { location: '/bundle' }).end()
      else response.writeHead(500).end()
    })
    await assert.rejects(fetchBundle(url, signal, root.pem), /status 500/)
    await assert.rejects(fetchBundle(`${url}?moved`, signal, root.pem), /status 302/)
    await assert.rejects(fetchBundle(`${url}?long`, signal, root.pem), /more than \d+ bytes/)
  })
})

describe('the roots of a mesh', () => {
  test('are those of all sources, each once and in one order', () => {
    const told: (readonly string[])[] = []
    const bundle = createMeshTrustBundle()
    bundle.subscribe(() => told.push(bundle.roots))
    bundle.update('a', [root.pem])
    bundle.update('b', [`${other.pem}\n${root.pem}`])
    bundle.update('a', [root.pem])
    const turned = createMeshTrustBundle()
    turned.update('b', [other.pem])
    turned.update('a', [root.pem])
    assert.deepEqual(bundle.roots, turned.roots)
    assert.equal(bundle.roots.length, 2)
    assert.equal(told.length, 2)
    bundle.keep(new Set(['a']))
    assert.deepEqual(bundle.roots, certificateBlocks(root.pem))
  })

  test('are certificate authorities: a source that says anything else keeps what it said before', async () => {
    const bundle = createMeshTrustBundle()
    bundle.update('a', [root.pem])
    const leaf = await makeLeaf(root, ['spiffe://td/ns/a/sa/b'])
    for (const pem of [leaf.pem, 'nothing', root.pem.replace(/\n[^-]{20}/, '\nAAAA')]) {
      assert.throws(() => bundle.update('a', [other.pem, pem]), TrustBundleError)
    }
    assert.deepEqual(bundle.roots, certificateBlocks(root.pem))
  })
})
