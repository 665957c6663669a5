import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, SignJWT } from 'jose'
import { type IssuerKeys, makeIssuerKeys, signToken, startTokenIssuer } from '../../../test/support/token-issuer.ts'
import { createOidcAuthenticator, parseJwtRule } from './oidc.ts'

const identity = 'spiffe://td/ns/a/sa/b'
const subject = 'system:serviceaccount:a:b'

const sign = (iss: string, keys: IssuerKeys): Promise<string> => signToken(keys, { iss, aud: 'us', sub: subject })

type Options = Omit<Parameters<typeof createOidcAuthenticator>[0], 'rule' | 'trustDomain'>

function accepting(iss: string, more: object = {}, options: Options = {}) {
  const rule = parseJwtRule(JSON.stringify({ issuer: iss, audiences: ['us'], ...more }))
  const authenticator = createOidcAuthenticator({ rule, trustDomain: () => 'td', ...options })
  return async (token: string) => {
    const header = (name: string) => (name === 'authorization' ? [`Bearer ${token}`] : [])
    return (await authenticator.authenticate({ peerAddress: '', header })).identities
  }
}

test('keys are found by the address that the issuer names, and again when it has new ones', async () => {
  const [first, second] = [await makeIssuerKeys('one'), await makeIssuerKeys('two')]
  const published = [first.jwk]
  await using issuer = await startTokenIssuer(published)
  const { address } = issuer
  const accept = accepting(address)
  assert.deepEqual(await accept(await sign(address, first)), [identity])
  const byNext = await sign(address, second)
  await assert.rejects(accept(byNext), { code: 'UNAUTHENTICATED' })
  published.push(second.jwk)
  // A key that is not known is asked for again after a pause.
  for (let isAccepted = false; !isAccepted; ) {
    isAccepted = await accept(byNext).then(
      () => true,
      () => new Promise((resolve) => setTimeout(resolve, 50, false)),
    )
  }
  await assert.rejects(accept(await sign(address, { ...second, jwk: first.jwk })), { code: 'UNAUTHENTICATED' })
})

test('a token need not say which of several keys has signed it', async () => {
  const [first, second, other] = [await makeIssuerKeys(), await makeIssuerKeys(), await makeIssuerKeys()]
  const keys = createLocalJWKSet({ keys: [first.jwk, second.jwk] })
  const accept = accepting('https://i', {}, { keys })
  assert.deepEqual(await accept(await sign('https://i', second)), [identity])
  await assert.rejects(accept(await sign('https://i', other)), { message: /signature verification failed/ })
  const expired = new SignJWT({ iss: 'https://i', aud: 'us', sub: subject }).setProtectedHeader({ alg: 'ES256' })
  await assert.rejects(accept(await expired.setExpirationTime('-1s').sign(second.privateKey)), { message: /exp/ })
})

test('who sends tokens cannot have us ask the issuer all the time', async () => {
  const keys = await makeIssuerKeys('one')
  await using issuer = await startTokenIssuer([])
  const { address, asked } = issuer
  const accept = accepting(address)
  for (const junk of ['junk', 'a.b.c', '..']) await assert.rejects(accept(junk), { code: 'UNAUTHENTICATED' })
  assert.deepEqual(asked, [])
  const token = await sign(address, keys)
  await Promise.all(Array.from({ length: 50 }, () => assert.rejects(accept(token), { message: /status 503/ })))
  assert.deepEqual(asked, ['/.well-known/openid-configuration'])
})

test('keys and their address are read over https alone, but on this machine', async () => {
  const token = await sign('http://issuer.example', await makeIssuerKeys())
  const refused = { message: /expected an https address of keys/ }
  await assert.rejects(accepting('http://issuer.example')(token), refused)
  await assert.rejects(accepting('http://issuer.example', { jwks_uri: 'http://issuer.example/keys' })(token), refused)
  await assert.rejects(accepting('http://issuer.example', { jwks_uri: 'file:///etc/keys' })(token), refused)
  await assert.rejects(
    accepting('http://issuer.example', { jwks_uri: 'http://127.0.0.1.evil.example/' })(token),
    refused,
  )
})

test('claims of another form are refused', async () => {
  const keys = await makeIssuerKeys()
  const accept = accepting('https://i', {}, { keys: createLocalJWKSet({ keys: [keys.jwk] }) })
  const later = Math.floor(Date.now() / 1000) + 3600
  const claims = { iss: 'https://i', aud: ['us'], sub: subject, exp: later }
  const of = (changes: object) =>
    new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'ES256' }).sign(keys.privateKey)
  for (const good of [{}, { aud: 'us' }, { aud: ['them', 'us'] }, { nbf: later - 7200 }]) {
    assert.deepEqual(await accept(await of(good)), [identity])
  }
  for (const bad of [
    { aud: undefined },
    { aud: [] },
    { aud: ['us2'] },
    { aud: 'us ' },
    { iss: undefined },
    { iss: 'https://i/' },
    { exp: undefined },
    { nbf: later },
    { sub: undefined },
    { sub: 'system:serviceaccount::b' },
    { sub: 'system:serviceaccount:a:b:c' },
    { sub: 'system:serviceaccount:a/sa/x:b' },
    { sub: 'system:serviceaccount:a:b\n' },
    { sub: 'System:serviceaccount:a:b' },
    { sub: 'system:node:a' },
  ]) {
    await assert.rejects(accept(await of(bad)), { code: 'UNAUTHENTICATED' }, JSON.stringify(bad))
  }
})
