// Service account tokens: signed by the server, bound to a service account and perhaps to a pod, checked against both.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomUUID } from 'node:crypto'
import { exportJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { AuthenticatedUser, KubeObject, ObjectReader } from '../types.ts'

export interface TokenOptions {
  /** PEM of the RSA key that signs. */
  readonly key: string
  /** `iss` of the tokens, and where the keys are published below. */
  readonly issuer: string
  /** The audience of tokens for this API server. */
  readonly apiAudiences: readonly string[]
}

export interface BoundObject {
  readonly kind: 'Pod' | 'Node' | 'Secret'
  readonly name: string
  readonly uid: string
}

export interface TokenClaims {
  readonly namespace: string
  readonly account: { readonly name: string; readonly uid: string }
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
  readonly bound?: BoundObject
  /** The node of the bound pod. */
  readonly node?: { readonly name: string; readonly uid?: string }
}

export interface VerifiedToken {
  readonly user: AuthenticatedUser
  readonly audiences: readonly string[]
}

interface PrivateClaims {
  readonly namespace: string
  readonly serviceaccount: { readonly name: string; readonly uid: string }
  readonly pod?: { readonly name: string; readonly uid: string }
  readonly node?: { readonly name: string; readonly uid?: string }
  readonly secret?: { readonly name: string; readonly uid: string }
}

export interface TokenAuthority {
  readonly issuer: string
  readonly apiAudiences: readonly string[]
  issue(claims: TokenClaims): Promise<{ token: string; expires: Date }>
  /**
   * The user of a token that is ours, in time, meant for one of the audiences, and whose account and bound object still exist.
   * Rejects with a TokenError otherwise.
   */
  verify(token: string, audiences: readonly string[], objects: ObjectReader): Promise<VerifiedToken>
  /** The public key as a JSON web key set. */
  jwks(): Promise<unknown>
}

export class TokenError extends Error {
  readonly code = 'INVALID_TOKEN'
}

export function createTokenAuthority(options: TokenOptions): TokenAuthority {
  const privateKey = createPrivateKey(options.key)
  const publicKey = createPublicKey(privateKey)
  const kid = keyId(publicKey)

  return {
    issuer: options.issuer,
    apiAudiences: options.apiAudiences,
    async issue(claims) {
      const now = Math.floor(Date.now() / 1000)
      const expires = now + claims.expirationSeconds
      const token = await new SignJWT({ 'kubernetes.io': privateClaims(claims) })
        .setProtectedHeader({ alg: 'RS256', kid })
        .setIssuer(options.issuer)
        .setSubject(`system:serviceaccount:${claims.namespace}:${claims.account.name}`)
        .setAudience([...claims.audiences])
        .setIssuedAt(now)
        .setNotBefore(now)
        .setExpirationTime(expires)
        .setJti(randomUUID())
        .sign(privateKey)
      return { token, expires: new Date(expires * 1000) }
    },
    async verify(token, audiences, objects) {
      const payload = await verifySignature(token, publicKey, options.issuer)
      const own = typeof payload.aud === 'string' ? [payload.aud] : (payload.aud ?? [])
      const common = audiences.filter((audience) => own.includes(audience))
      if (common.length === 0) throw new TokenError(`token audiences ${JSON.stringify(own)} are not among the accepted`)
      return { user: userOf(payload, objects), audiences: common }
    },
    async jwks() {
      return { keys: [{ ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' }] }
    },
  }
}

function keyId(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
}

function privateClaims({ namespace, account, bound, node }: TokenClaims): PrivateClaims {
  const reference = bound === undefined ? undefined : { name: bound.name, uid: bound.uid }
  return {
    namespace,
    serviceaccount: account,
    ...(bound?.kind === 'Pod' && reference ? { pod: reference } : {}),
    ...(bound?.kind === 'Secret' && reference ? { secret: reference } : {}),
    ...(bound?.kind === 'Node' && reference ? { node: reference } : {}),
    ...(node === undefined ? {} : { node }),
  }
}

async function verifySignature(token: string, key: KeyObject, issuer: string): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer,
      algorithms: ['RS256'],
      requiredClaims: ['exp', 'sub', 'aud'],
    })
    return payload
  } catch (cause) {
    throw new TokenError(`invalid bearer token: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

function userOf(payload: JWTPayload, objects: ObjectReader): AuthenticatedUser {
  const claims = payload['kubernetes.io'] as PrivateClaims | undefined
  if (claims?.serviceaccount === undefined) throw new TokenError('token has no service account')
  const { namespace, serviceaccount, pod, node, secret } = claims
  const name = `system:serviceaccount:${namespace}:${serviceaccount.name}`
  if (payload.sub !== name) throw new TokenError('token subject is not its service account')
  requireExisting(objects, 'serviceaccounts', namespace, serviceaccount, 'service account')
  if (pod !== undefined) requireExisting(objects, 'pods', namespace, pod, 'pod')
  if (secret !== undefined) requireExisting(objects, 'secrets', namespace, secret, 'secret')
  if (pod === undefined && node?.uid !== undefined) {
    requireExisting(objects, 'nodes', undefined, { name: node.name, uid: node.uid }, 'node')
  }
  return {
    name,
    uid: serviceaccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: {
      ...(payload.jti === undefined ? {} : { 'authentication.kubernetes.io/credential-id': [`JTI=${payload.jti}`] }),
      ...(pod === undefined
        ? {}
        : {
            'authentication.kubernetes.io/pod-name': [pod.name],
            'authentication.kubernetes.io/pod-uid': [pod.uid],
          }),
      ...(node === undefined
        ? {}
        : {
            'authentication.kubernetes.io/node-name': [node.name],
            ...(node.uid === undefined ? {} : { 'authentication.kubernetes.io/node-uid': [node.uid] }),
          }),
    },
  }
}

/** An object that is being deleted counts for one minute after its grace period, so that its last requests pass. */
const deletionLeewayMs = 60_000

function requireExisting(
  objects: ObjectReader,
  plural: string,
  namespace: string | undefined,
  reference: { readonly name: string; readonly uid: string },
  what: string,
): KubeObject {
  const key = namespace === undefined ? { name: reference.name } : { namespace, name: reference.name }
  const object = objects.get('', plural, key)
  if (object === undefined) throw new TokenError(`${what} ${reference.name} of the token has been deleted`)
  if (object.metadata.uid !== reference.uid) throw new TokenError(`${what} ${reference.name} of the token was replaced`)
  const { deletionTimestamp } = object.metadata
  if (deletionTimestamp !== undefined && Date.parse(deletionTimestamp) + deletionLeewayMs < Date.now()) {
    throw new TokenError(`${what} ${reference.name} of the token is being deleted`)
  }
  return object
}
