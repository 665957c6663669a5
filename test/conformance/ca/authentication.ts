// Tables of the authenticators.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { type CryptoKey, createLocalJWKSet, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import {
  type AuthenticationRequest,
  createClientCertificateAuthenticator,
  createKubernetesTokenAuthenticator,
  createOidcAuthenticator,
  createXfccAuthenticator,
  type PeerAuthentication,
  parseJwtRule,
  type ReviewToken,
  serviceAccountOfReview,
  type TokenReviewStatus,
  trustOfPeers,
} from '../../../src/ca/index.ts'
import { makeCa, makeLeaf } from '../../support/ca.ts'
import { assertOutcome, type Input, list, outcomeOf, type Row, type RunTable, secondsOf, text } from './data.ts'

type Fields = Readonly<Record<string, unknown>>

function requestOf(headers: Fields, peerAddress = '', peerAuthentication?: PeerAuthentication): AuthenticationRequest {
  return {
    peerAddress,
    ...(peerAuthentication === undefined ? {} : { peerAuthentication }),
    header: (name) => (Array.isArray(headers[name]) ? list(headers[name]) : headers[name] ? [text(headers[name])] : []),
  }
}

const authenticate: RunTable = async (row, expected, input) => {
  const request = requestOf((row.grpcMetadata ?? {}) as Fields, '', await peerOf(row))
  const authenticator =
    row.authenticator === 'clientCertificate' ? createClientCertificateAuthenticator() : kubernetesAuthenticator(input)
  const outcome = await outcomeOf(async () => {
    const { identities } = await authenticator.authenticate(request)
    return { identities }
  })
  assertOutcome(outcome, expected)
}

async function peerOf(row: Row): Promise<PeerAuthentication | undefined> {
  const peer = (row.peer ?? {}) as {
    readonly authType?: string
    readonly verifiedChains?: readonly { readonly leaf: Fields }[]
  }
  if (peer.authType === undefined) return undefined
  if (peer.authType !== 'tls') return { kind: 'other', name: peer.authType }
  const ca = await makeCa({ name: 'clients' })
  const chains = (peer.verifiedChains ?? []).map(async ({ leaf }) => {
    const { pem } = await makeLeaf(ca, list(leaf.uris))
    return [new X509Certificate(pem)]
  })
  return { kind: 'tls', verifiedChains: await Promise.all(chains) }
}

function kubernetesAuthenticator(input: Input) {
  const clusters = input.clusters as Readonly<Record<string, { readonly tokens: Readonly<Record<string, Fields>> }>>
  const localId = text(input.localCluster)
  const reviewerOf = (clusterId: string): ReviewToken | undefined => {
    const cluster = clusters[clusterId]
    if (cluster === undefined) return undefined
    return async (token, audiences): Promise<TokenReviewStatus> => {
      const known = cluster.tokens[token]
      if (known === undefined) return { authenticated: false }
      const { authenticated, username, groups } = known
      return {
        authenticated: authenticated === true,
        audiences,
        user: { username: text(username), groups: list(groups) },
      }
    }
  }
  return createKubernetesTokenAuthenticator({
    audiences: ['istio-ca'],
    trustDomain: () => text(input.trustDomain),
    clusters: {
      localId,
      aliases: new Map(Object.entries(input.clusterAliases as Readonly<Record<string, string>>)),
      remoteIds: () => Object.keys(clusters).filter((clusterId) => clusterId !== localId),
      reviewerOf,
    },
  })
}

const tokenReview: RunTable = async (row, expected) => {
  const outcome = await outcomeOf(() => {
    const { namespace, serviceAccount, podName, podUid } = serviceAccountOfReview(row.status as TokenReviewStatus)
    return {
      namespace,
      serviceAccount,
      ...(podName === undefined ? {} : { podName }),
      ...(podUid === undefined ? {} : { podUID: podUid }),
    }
  })
  assertOutcome(outcome, expected)
}

const oidc: RunTable = async (row, expected, input) => {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'key', alg: 'RS256' }
  const authenticator = createOidcAuthenticator({
    rule: parseJwtRule(JSON.stringify(input.rule)),
    trustDomain: () => text(input.trustDomain),
    keys: createLocalJWKSet({ keys: [jwk] }),
  })
  const headers: Record<string, string> = {}
  const signed = row.claims === undefined ? undefined : await tokenOf(row, privateKey)
  const token = row.token === undefined || row.token === null ? signed : text(row.token)
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  const outcome = await outcomeOf(async () => (await authenticator.authenticate(requestOf(headers))).identities)
  assertOutcome(outcome, expected)
}

/** A token of the row's claims: by default signed by the issuer's key; `alg`, `kid` and `signedBy: other` change that. */
async function tokenOf(row: Row, issuerKey: CryptoKey): Promise<string> {
  const { expIn, nbfIn, ...claims } = row.claims as Fields
  const from = (offset: unknown): number => Math.floor(Date.now() / 1000) + secondsOf(text(offset))
  const payload = {
    ...claims,
    ...(expIn === undefined ? {} : { exp: from(expIn) }),
    ...(nbfIn === undefined ? {} : { nbf: from(nbfIn) }),
  }
  const alg = text(row.alg ?? 'RS256')
  if (alg === 'none') return new UnsecuredJWT(payload).encode()
  const header = { alg, kid: text(row.kid ?? 'key') }
  const jwt = new SignJWT(payload).setProtectedHeader(header)
  if (alg.startsWith('HS')) return jwt.sign(Buffer.alloc(64, 'a'))
  return jwt.sign(row.signedBy === 'other' ? (await generateKeyPair(alg)).privateKey : issuerKey)
}

const jwtRule: RunTable = async (row, expected) => {
  const outcome = await outcomeOf(() => {
    parseJwtRule(text(row.rule))
    return 'ok'
  })
  assertOutcome(outcome, expected)
}

const xfccTrust: RunTable = (row, expected) => {
  const isTrusted = trustOfPeers({ trustedCidrs: text(row.cidrs).split(','), trustsLoopback: true })
  assert.equal(isTrusted(text(row.peer)), expected)
}

const xfccHeader: RunTable = async (row, expected, input) => {
  const authenticator = createXfccAuthenticator({ trustedCidrs: [], trustsLoopback: true })
  const request = requestOf({ 'x-forwarded-client-cert': text(row.header) }, text(input.peer))
  const outcome = await outcomeOf(async () => {
    const { identities } = await authenticator.authenticate(request)
    return { identities }
  })
  assertOutcome(outcome, expected)
}

export const authenticationKinds = { authenticate, tokenReview, oidc, jwtRule, xfccTrust, xfccHeader }
