import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { makeCa } from '../../test/support/ca.ts'
import { logLines } from '../../test/support/log-lines.ts'
import { createAuthority, signingMaterial } from '../ca/index.ts'
import { defaultMeshConfig, type MeshConfig } from '../config/index.ts'
import { mesh as messages } from '../proto/control-plane/index.ts'
import { certificateBlocks, isSameBundle } from '../util/index.ts'
import { followMeshTrust, rootsOfMesh } from './mesh-trust.ts'

const defaults = defaultMeshConfig('istio-system')
const meshConfig = (caCertificates: readonly object[], trustDomainAliases: readonly string[] = []): MeshConfig => ({
  ...defaults,
  trustDomainAliases,
  fields: { caCertificates },
})

test('roots count that are for every trust domain, the own one or an alias', () => {
  const config = meshConfig(
    [
      { pem: 'all' },
      { pem: 'own', trustDomains: ['cluster.local'] },
      { spiffeBundleUrl: 'https://a', trustDomains: ['old', 'x'] },
      { spiffeBundleUrl: 'https://a' },
      { pem: 'foreign', trustDomains: ['x', 'y'] },
    ],
    ['old'],
  )
  assert.deepEqual(rootsOfMesh(config), { pems: ['all', 'own'], urls: ['https://a'], foreign: ['x y'] })
})

test('a published bundle is read again and again; while it cannot be read its last roots stay; they go with its address', {
  timeout: 20_000,
}, async (t) => {
  const server = await makeCa({ name: 'server' })
  const material = signingMaterial({ certificate: server.pem, key: server.key, roots: server.pem, chain: '' })
  const authority = createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 3600 })
  const { privateKey, chain } = await authority.issueServingCertificate(['localhost'], 3600)
  const [first, second] = [await makeCa({ name: 'first' }), await makeCa({ name: 'second' })]
  let published: string | undefined = first.pem
  const https = createServer({ key: privateKey, cert: chain }, (_, response) => {
    if (published === undefined) response.writeHead(503).end()
    else
      response.end(
        JSON.stringify({ keys: [{ use: 'x509-svid', x5c: [published.replaceAll(/-----[^-]+-----|\s/g, '')] }] }),
      )
  }).listen(0, '127.0.0.1')
  t.after(() => https.close())
  await once(https, 'listening')
  const url = `https://localhost:${(https.address() as AddressInfo).port}/`

  const log = logLines()
  let take = (): void => {}
  const mesh = {
    current: meshConfig([{ spiffeBundleUrl: url }]),
    subscribe(listener: () => void) {
      take = listener
      return () => {}
    },
  }
  const times = { refreshMs: 20, retryMs: 20 }
  using trust = followMeshTrust({ authority, mesh, endpointRoots: server.pem, ...times, log: log.logging.scope('ca') })
  const until = (...pems: readonly string[]) =>
    new Promise<void>((resolve) => {
      const look = (): void => {
        if (isSameBundle(trust.bundle.roots.join(''), pems.join(''))) resolve()
      }
      trust.bundle.subscribe(look)
      look()
    })
  await until(server.pem, first.pem)
  published = second.pem
  await until(server.pem, second.pem)
  published = undefined
  await log.until(/status 503/)
  assert.equal(trust.bundle.roots.length, 2)

  const [resource] = [...trust.source.list()]
  const { caCertificatesPem } = fromBinary(messages.ProxyConfigSchema, resource?.body ?? new Uint8Array())
  assert.deepEqual(caCertificatesPem, trust.bundle.roots)
  mesh.current = meshConfig([])
  take()
  assert.deepEqual(trust.bundle.roots, certificateBlocks(server.pem))
})
