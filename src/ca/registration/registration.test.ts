import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCa, makeLeaf, makeRequest } from '../../../test/support/ca.ts'
import { createRegistrationAuthority, type SignInCluster } from './registration-authority.ts'

const identity = 'spiffe://cluster.local/ns/a/sa/b'

async function world() {
  const root = await makeCa({ name: 'root' })
  const intermediate = await makeCa({ name: 'int', issuer: root })
  const leaf = await makeLeaf(intermediate, [identity])
  const asked: Parameters<SignInCluster>[0][] = []
  const authority = createRegistrationAuthority({
    certSignerDomain: 'signers.example',
    defaultSigner: 'example.com/default',
    defaultTtlSeconds: 3600,
    maxTtlSeconds: 7200,
    rootsOf: (signerName) => (signerName === 'example.com/default' ? root.pem : ''),
    signInCluster: async (request) => {
      asked.push(request)
      if (request.signerName.endsWith('/broken')) throw new Error('denied')
      return request.signerName.endsWith('/leaf-only') ? leaf.pem : leaf.pem + intermediate.pem
    },
  })
  const csrPem = await makeRequest({ key: 'ecP256', uris: [identity] })
  return { root, authority, asked, csrPem }
}

test('the cluster signs what the caller may have; the root of the mesh goes with it', async () => {
  const { authority, asked, csrPem, root } = await world()
  const chain = await authority.sign({ csrPem, identities: [identity], validitySeconds: 0 })
  assert.equal(chain.length, 3)
  assert.equal(chain[2]?.trim(), root.pem.trim())
  assert.equal(asked[0]?.signerName, 'example.com/default')
  assert.equal(asked[0]?.expirationSeconds, 3600)
  assert.equal(authority.rootBundle.trim(), root.pem.trim())
})

test('what is not theirs, too long, without a root or not signed is refused', async () => {
  const { authority, csrPem } = await world()
  const sign = (identities: readonly string[], validitySeconds = 0, signer = '') =>
    authority.sign({ csrPem, identities, validitySeconds }, signer)
  await assert.rejects(sign(['spiffe://cluster.local/ns/a/sa/c']), {
    code: 'CSR_ERROR',
    message: 'unable to validate SAN Identities in CSR',
  })
  await assert.rejects(sign([identity], 7201), { code: 'TTL_ERROR' })
  await assert.rejects(sign([identity], 0, 'leaf-only'), {
    code: 'CSR_ERROR',
    message: 'failed to find root cert from either signed cert-chain or mesh config',
  })
  await assert.rejects(sign([identity], 0, 'broken'), { code: 'CERT_GEN_ERROR' })
})
