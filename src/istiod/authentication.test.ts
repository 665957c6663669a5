// Which proofs are accepted by which settings, and which of several counts.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeCa, makeLeaf } from '../../test/support/ca.ts'
import { makeIssuerKeys, signToken, startTokenIssuer } from '../../test/support/token-issuer.ts'
import type { KubeObject, Resource } from '../api/index.ts'
import { type AuthenticationRequest, authenticate } from '../ca/index.ts'
import { type AuthenticationOptions, createAuthenticators } from './authentication.ts'
import { readAuthenticationSettings } from './authentication-settings.ts'

type Review = readonly [cluster: string, audiences: readonly string[]]
type Environment = Readonly<Record<string, string>>

/** Knows of two clusters that hold the token `good` to be of their account `app/kube`; `reviews` lists what they were asked. */
function mesh(env: Environment) {
  const reviews: Review[] = []
  const clientOf = (cluster: string): AuthenticationOptions['client'] => ({
    async create<T extends KubeObject>(resource: Resource, object: T): Promise<T> {
      assert.equal(resource.plural, 'tokenreviews')
      const { token, audiences } = object.spec as { token: string; audiences: readonly string[] }
      reviews.push([cluster, audiences])
      const user = { username: 'system:serviceaccount:app:kube', groups: ['system:serviceaccounts'] }
      return { ...object, status: { authenticated: token === 'good', audiences, user } }
    },
  })
  const authenticators = createAuthenticators({
    ...readAuthenticationSettings(env),
    client: clientOf('here'),
    clusterId: 'here',
    clusterAliases: new Map([['formerly', 'there']]),
    remoteClusters: { ids: () => ['there'], clientOf: (id) => (id === 'there' ? clientOf(id) : undefined) },
    trustDomain: () => 'td',
  })
  async function identities(
    headers: Environment,
    connection: Pick<AuthenticationRequest, 'peerAuthentication'> & { readonly peerAddress?: string } = {},
  ): Promise<readonly string[]> {
    const header = (name: string): readonly string[] => [headers[name] ?? []].flat()
    const outcome = await authenticate(authenticators, { peerAddress: '192.0.2.1:1', header, ...connection })
    return outcome.kind === 'accepted' ? outcome.caller.identities : []
  }
  return { names: authenticators.map(({ name }) => name), identities, reviews }
}

const bearer = (token: string): Environment => ({ authorization: `Bearer ${token}` })
const ofGateway = { 'x-forwarded-client-cert': 'URI=spiffe://td/ns/app/sa/vouched' }
const gateway = { peerAddress: '10.1.2.3:1' }
const ofKube = ['spiffe://td/ns/app/sa/kube']

describe('proofs of who a caller is', () => {
  test('are certificates and tokens of the clusters, and no others unless settings say so', async () => {
    const { names, identities } = mesh({})
    assert.deepEqual(names, ['ClientCertAuthenticator', 'KubeJWTAuthenticator'])
    assert.deepEqual(await identities(ofGateway, gateway), [])
    assert.deepEqual(await identities(ofGateway, { peerAddress: '127.0.0.1:1' }), [])
  })

  test('of tokens are for the cluster that the caller names, and for the audiences of the settings', async () => {
    const { identities, reviews } = mesh({ TOKEN_AUDIENCES: 'a,b' })
    for (const clusterid of ['', 'here', 'there', 'formerly']) {
      assert.deepEqual(await identities({ ...bearer('good'), clusterid }), ofKube, clusterid)
    }
    assert.deepEqual(await identities({ ...bearer('good'), clusterid: 'elsewhere' }), [])
    assert.deepEqual(await identities(bearer('bad')), [])
    const asked = ['here', 'here', 'there', 'there', 'here']
    assert.deepEqual(
      reviews,
      asked.map((cluster) => [cluster, ['a', 'b']]),
    )
  })

  test('are tokens of the issuer of JWT_RULE and of TOKEN_ISSUER, which no cluster is asked about', async () => {
    const [first, second] = [await makeIssuerKeys('one'), await makeIssuerKeys('two')]
    await using ruled = await startTokenIssuer([first.jwk])
    await using further = await startTokenIssuer([second.jwk])
    const env = {
      JWT_RULE: JSON.stringify({ issuer: ruled.address, audiences: ['us'] }),
      TOKEN_ISSUER: further.address,
      AUDIENCE: 'them',
    }
    const sub = 'system:serviceaccount:app:web'
    const ofRule = await signToken(first, { iss: ruled.address, aud: 'us', sub })
    const ofIssuer = await signToken(second, { iss: further.address, aud: 'them', sub })
    const { names, identities, reviews } = mesh(env)
    assert.deepEqual(names, ['ClientCertAuthenticator', 'JwtAuthenticator', 'JwtAuthenticator', 'KubeJWTAuthenticator'])
    const web = ['spiffe://td/ns/app/sa/web']
    assert.deepEqual(await identities(bearer(ofRule)), web)
    assert.deepEqual(await identities(bearer(ofIssuer)), web)
    assert.deepEqual(reviews, [])
    // The keys of one sign for the other no more than its audience counts for it.
    const crossed = [
      signToken(second, { iss: ruled.address, aud: 'us', sub }),
      signToken(second, { iss: further.address, aud: 'us', sub }),
    ]
    for (const token of crossed) assert.deepEqual(await identities(bearer(await token)), [])
    assert.deepEqual(await identities(bearer('good')), ofKube)
    assert.deepEqual(await mesh({ ...env, JWT_RULE: '' }).identities(bearer(ofRule)), [])
    assert.deepEqual(await mesh({ ...env, KUBERNETES_SERVICE_HOST: '10.0.0.1' }).identities(bearer(ofIssuer)), [])
  })

  test('are the words of gateways in TRUSTED_GATEWAY_CIDR, and of nobody else, not even on this machine', async () => {
    const { names, identities } = mesh({ TRUSTED_GATEWAY_CIDR: '10.1.0.0/16' })
    assert.deepEqual(names, ['ClientCertAuthenticator', 'KubeJWTAuthenticator', 'XfccAuthenticator'])
    assert.deepEqual(await identities(ofGateway, gateway), ['spiffe://td/ns/app/sa/vouched'])
    assert.deepEqual(await identities({}, gateway), [])
    for (const peerAddress of ['10.2.0.1:1', '127.0.0.1:1', '']) {
      assert.deepEqual(await identities(ofGateway, { peerAddress }), [], peerAddress)
    }
  })

  test('count in this order: certificate, token, word of a gateway', async () => {
    const leaf = await makeLeaf(await makeCa({ name: 'mesh' }), { uris: ['spiffe://td/ns/app/sa/cert'] })
    const tls = { kind: 'tls', verifiedChains: [[new X509Certificate(leaf.pem)]] } as const
    const { identities, reviews } = mesh({ TRUSTED_GATEWAY_CIDR: '10.1.0.0/16' })
    const all = { ...bearer('good'), ...ofGateway }
    assert.deepEqual(await identities(all, { ...gateway, peerAuthentication: tls }), ['spiffe://td/ns/app/sa/cert'])
    assert.deepEqual(reviews, [])
    assert.deepEqual(await identities(all, gateway), ofKube)
    assert.deepEqual(await identities({ ...all, ...bearer('bad') }, gateway), ['spiffe://td/ns/app/sa/vouched'])
  })
})
