import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import { type LeafNames, makeCa, makeLeaf } from '../../../test/support/ca.ts'
import { type AuthenticationRequest, type Authenticator, authenticate, bearerToken } from './authenticator.ts'
import { createClientCertificateAuthenticator } from './client-certificate.ts'
import { createKubernetesTokenAuthenticator, type ReviewToken } from './kubernetes-token.ts'
import { isMeshPeer } from './mesh-peer.ts'
import { createOidcAuthenticator, parseJwtRule } from './oidc.ts'
import { serviceAccountOfSubject, type TokenReviewStatus } from './service-account.ts'
import { createXfccAuthenticator, identitiesOfXfcc, trustOfPeers } from './xfcc.ts'

function request(
  headers: Readonly<Record<string, readonly string[]>> = {},
  peerAddress = '10.0.0.1:1',
): AuthenticationRequest {
  return { peerAddress, header: (name) => headers[name] ?? [] }
}

test('the first authenticator that accepts decides; nobody is accepted without an identity', async () => {
  const refusing: Authenticator = { name: 'a', authenticate: async () => Promise.reject(new Error('no')) }
  const empty: Authenticator = { name: 'b', authenticate: async () => ({ identities: [], source: 'jwt' }) }
  const accepting: Authenticator = { name: 'c', authenticate: async () => ({ identities: ['x'], source: 'oidc' }) }
  assert.deepEqual(await authenticate([refusing, empty], request()), {
    kind: 'refused',
    reasons: ['a: no', 'b: no identity'],
    isNameless: true,
  })
  assert.deepEqual(await authenticate([refusing, accepting], request()), {
    kind: 'accepted',
    caller: { identities: ['x'], source: 'oidc' },
  })
  assert.deepEqual(await authenticate([], request()), { kind: 'refused', reasons: [], isNameless: false })
})

test('a service account subject has exactly four parts, none empty', () => {
  assert.deepEqual(serviceAccountOfSubject('system:serviceaccount:a:b'), { namespace: 'a', serviceAccount: 'b' })
  for (const subject of [
    '',
    'system:serviceaccount:a',
    'system:serviceaccount:a:b:c',
    'system:serviceaccount::b',
    'system:node:a:b',
  ]) {
    assert.equal(serviceAccountOfSubject(subject), undefined)
  }
})

test('tokens are never reviewed without an audience', () => {
  const clusters = { localId: 'k', aliases: new Map(), remoteIds: () => [], reviewerOf: () => undefined }
  assert.throws(
    () => createKubernetesTokenAuthenticator({ clusters, audiences: [], trustDomain: () => 't' }),
    /audiences/,
  )
})

test('the first bearer token is looked at, and the scheme Istio over HTTP alone', () => {
  const of = (values: readonly string[], isHttp = false) =>
    bearerToken({ peerAddress: '', isHttp, header: (name) => (name === 'authorization' ? values : []) })
  assert.equal(of(['Basic x', 'Bearer', 'Bearer ', 'Bearer a', 'Bearer b']), 'a')
  assert.equal(of(['Istio a'], true), 'a')
  for (const values of [['Istio a'], ['bearer a'], ['Bearera'], ['xBearer a'], []]) {
    assert.throws(() => of(values), { code: 'UNAUTHENTICATED' })
  }
})

test('a token is in no reason, whatever the API server says of it', async () => {
  const refusals: readonly ReviewToken[] = [
    async (token) => ({ authenticated: false, error: `cannot read ${token}` }),
    (token) => Promise.reject(new Error(`POST tokenreviews: ${token} is no token`)),
  ]
  for (const review of refusals) {
    const clusters = { localId: 'k', aliases: new Map(), remoteIds: () => [], reviewerOf: () => review }
    const authenticator = createKubernetesTokenAuthenticator({ clusters, audiences: ['a'], trustDomain: () => 't' })
    const outcome = await authenticate([authenticator], request({ authorization: ['Bearer a-very-secret-token'] }))
    assert.ok(outcome.kind === 'refused')
    assert.match(outcome.reasons.join(), /failed to validate the JWT from cluster "k": .*…/)
    assert.ok(!outcome.reasons.join().includes('a-very-secret-token'))
  }
})

test('a review counts when it accepted the token as a service account of its cluster', async () => {
  const good = {
    authenticated: true,
    audiences: ['us', 'others'],
    user: { username: 'system:serviceaccount:a:b', groups: ['system:serviceaccounts'] },
  }
  const asked: string[] = []
  const ask = (status: TokenReviewStatus, clusterid: readonly string[] = []) => {
    const reviewerOf = (id: string): ReviewToken | undefined => {
      asked.push(id)
      return id === 'local' || id === 'remote' ? async () => status : undefined
    }
    const clusters = {
      localId: 'local',
      aliases: new Map([['other-name', 'remote']]),
      remoteIds: () => ['remote'],
      reviewerOf,
    }
    const authenticator = createKubernetesTokenAuthenticator({ clusters, audiences: ['us'], trustDomain: () => 'td' })
    return authenticator.authenticate(request({ authorization: ['Bearer x'], clusterid }))
  }
  for (const cluster of [[], ['local'], ['remote'], ['other-name']]) {
    assert.deepEqual((await ask(good, cluster)).identities, ['spiffe://td/ns/a/sa/b'])
  }
  assert.deepEqual(asked, ['local', 'local', 'remote', 'remote'])
  await assert.rejects(ask(good, ['Local']), {
    message:
      'client claims to be in cluster "Local", but we only know about local cluster "local" and remote clusters [remote]',
  })
  const user = good.user
  const refused: readonly (readonly [TokenReviewStatus, RegExp])[] = [
    [{}, /the token is not authenticated$/],
    [{ ...good, authenticated: false }, /the token is not authenticated$/],
    [{ ...good, error: 'x' }, /the service account authentication returns an error: x$/],
    [{ authenticated: true, audiences: ['us'] }, /the token is not a service account$/],
    [{ ...good, user: { ...user, groups: ['system:serviceaccounts:a'] } }, /the token is not a service account$/],
    [{ ...good, user: { ...user, username: 'system:serviceaccount:a:' } }, /invalid username field/],
    [{ ...good, audiences: ['others'] }, /not for any of the expected audiences$/],
    [{ ...good, audiences: [] }, /not for any of the expected audiences$/],
  ]
  for (const [status, message] of refused) await assert.rejects(ask(status), { code: 'UNAUTHENTICATED', message })
})

test('only signed tokens of the issuer, in time and for us, are accepted', async () => {
  const [{ publicKey, privateKey }, other] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')])
  const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256' }] })
  const rule = parseJwtRule('{"issuer":"https://i","audiences":["us"]}')
  const authenticator = createOidcAuthenticator({ rule, keys, trustDomain: () => 'td' })
  const accept = async (token: string) =>
    (await authenticator.authenticate(request({ authorization: [`Bearer ${token}`] }))).identities
  const claims = { iss: 'https://i', aud: 'us', sub: 'system:serviceaccount:a:b' }
  const sign = (changes: object, key = privateKey, expires: string | null = '1h') => {
    const jwt = new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'ES256' })
    return (expires === null ? jwt : jwt.setExpirationTime(expires)).sign(key)
  }
  assert.deepEqual(await accept(await sign({})), ['spiffe://td/ns/a/sa/b'])
  for (const token of [
    await sign({ iss: 'https://other' }),
    await sign({ aud: 'them' }),
    await sign({ sub: 'system:serviceaccount:a/sa/x:b' }),
    await sign({}, other.privateKey),
    await sign({}, privateKey, '-1h'),
    await sign({}, privateKey, null),
    await sign({}).then((token) => `${token.slice(0, -86)}${token.at(-86) === 'A' ? 'B' : 'A'}${token.slice(-85)}`),
    new UnsecuredJWT(claims).setExpirationTime('1h').encode(),
    'junk',
  ]) {
    await assert.rejects(accept(token), { code: 'UNAUTHENTICATED' })
  }
  const noAudience = createOidcAuthenticator({
    rule: parseJwtRule('{"issuer":"https://i"}'),
    keys,
    trustDomain: () => 'td',
  })
  const bearer = request({ authorization: [`Bearer ${await sign({})}`] })
  await assert.rejects(noAudience.authenticate(bearer), { code: 'UNAUTHENTICATED' })
})

test('a forwarded certificate counts only from a trusted peer', async () => {
  const header = { 'x-forwarded-client-cert': ['URI=spiffe://d/ns/a/sa/b'] }
  const authenticator = createXfccAuthenticator({
    trustedCidrs: ['10.1.0.0/16', '192.0.2.7', '2001:db8::/32'],
    trustsLoopback: false,
  })
  for (const peer of ['10.1.2.3:1', '[::ffff:10.1.2.3]:1', '192.0.2.7:443', '[2001:db8::1]:9']) {
    const caller = await authenticator.authenticate(request(header, peer))
    assert.deepEqual(caller, { identities: ['spiffe://d/ns/a/sa/b'], source: 'xfcc' })
  }
  for (const peer of ['10.2.0.1:1', '192.0.2.8:1', '127.0.0.1:1', '10.1.2.3', 'host:1', '']) {
    await assert.rejects(authenticator.authenticate(request(header, peer)), { code: 'UNAUTHENTICATED' })
  }
  assert.throws(() => trustOfPeers({ trustedCidrs: ['10.0.0.0/33'], trustsLoopback: false }), /10\.0\.0\.0\/33/)
  for (const cidr of ['gateway', '10.0.0.0/8/9', '10.0.0.0/', '/8', '::/129', 'fe80::1%eth0/64', '10.0.0.0/-1']) {
    assert.throws(() => trustOfPeers({ trustedCidrs: [cidr], trustsLoopback: false }), /expected an IP address/, cidr)
  }
})

test('all elements of a forwarded header are read, quotes respected', () => {
  assert.deepEqual(
    identitiesOfXfcc('Hash=h;Subject="CN=hello";URI=spiffe://d/ns/a/sa/b;DNS=x.com,By=y;URI=spiffe://d/ns/c/sa/d'),
    ['spiffe://d/ns/a/sa/b', 'x.com', 'hello', 'spiffe://d/ns/c/sa/d'],
  )
  assert.deepEqual(identitiesOfXfcc('Subject="O=a,CN=quoted \\"x\\"";DNS=a;DNS=b'), ['a', 'b', 'quoted "x"'])
  assert.deepEqual(identitiesOfXfcc('Subject="O=a\\,CN=evil";URI=u'), ['u'])
  for (const header of [
    'junk',
    'URI=a;b',
    'URI="a',
    'Nonsense=1',
    'URI="a"b',
    'URI="a""b"',
    'URI=a,,URI=b',
    'URI=a;',
  ]) {
    assert.throws(() => identitiesOfXfcc(header), /^.*error in parsing xfcc header:/)
  }
})

test('a client certificate speaks for one workload of the mesh', async () => {
  const ca = await makeCa({ name: 'root' })
  const leaf = async (...uris: readonly string[]) => new X509Certificate((await makeLeaf(ca, uris)).pem)
  assert.equal(isMeshPeer(await leaf('spiffe://td/ns/a/sa/b'), ['td']), true)
  assert.equal(isMeshPeer(await leaf('spiffe://td/ns/a/sa/b'), []), false)
  assert.equal(isMeshPeer(await leaf('spiffe://a.b/ns/a/sa/b'), ['a@b']), true)
  assert.equal(isMeshPeer(await leaf('spiffe://other/ns/a/sa/b'), ['td']), false)
  assert.equal(isMeshPeer(await leaf('spiffe://td/ns/a/sa/b', 'spiffe://td/ns/a/sa/c'), ['td']), false)
  assert.equal(isMeshPeer(await leaf('https://td/ns/a/sa/b'), ['td']), false)
  assert.equal(isMeshPeer(await leaf(), ['td']), false)
})

test('an identity counts as a URI name only', async () => {
  const authority = await makeCa({ name: 'root' })
  const authenticator = createClientCertificateAuthenticator()
  const callerOf = async (names: LeafNames) => {
    const leaf = new X509Certificate((await makeLeaf(authority, names)).pem)
    return authenticator.authenticate({
      ...request({}),
      peerAuthentication: { kind: 'tls', verifiedChains: [[leaf]] },
    })
  }
  const uris = ['spiffe://other/ns/a/sa/b']
  const { identities } = await callerOf({ uris, dns: ['b.a.svc'] })
  assert.deepEqual(identities, [...uris, 'b.a.svc'])
  for (const name of ['spiffe://td/ns/istio-system/sa/istiod', 'SPIFFE://td/ns/a/sa/b']) {
    await assert.rejects(callerOf({ uris, dns: [name] }), {
      code: 'UNAUTHENTICATED',
      message: /no URI reads as an identity/,
    })
    for (const header of [
      `URI=${uris};DNS=${name}`,
      `URI=${uris};Subject="O=a,CN=${name}"`,
      `Subject="/O=a/CN=${name}"`,
    ]) {
      assert.throws(() => identitiesOfXfcc(header), { code: 'UNAUTHENTICATED' }, header)
    }
  }
})
