// Callers known by a token of an OpenID Connect issuer.
import { createRemoteJWKSet, errors, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose'
import { buildSpiffe } from '../client/index.ts'
import { AuthenticationError, type Authenticator, bearerToken } from './authenticator.ts'
import { serviceAccountOfSubject } from './service-account.ts'

export interface JwtRule {
  readonly issuer: string
  /** Discovered from the issuer when left out. */
  readonly jwksUri?: string
  readonly audiences: readonly string[]
}

export class JwtRuleError extends Error {
  readonly code = 'INVALID_JWT_RULE'
}

/** Parses the JSON of a JWT rule. Throws a JwtRuleError: a rule that is not understood must stop the start. */
export function parseJwtRule(text: string): JwtRule {
  let rule: unknown
  try {
    rule = JSON.parse(text)
  } catch (cause) {
    throw new JwtRuleError('invalid JWT rule: not JSON', { cause })
  }
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) {
    throw new JwtRuleError('invalid JWT rule: expected an object')
  }
  const fields = rule as Readonly<Record<string, unknown>>
  const { issuer, audiences = [] } = fields
  const jwksUri = fields.jwks_uri ?? fields.jwksUri
  if (typeof issuer !== 'string' || issuer === '') throw new JwtRuleError('invalid JWT rule: issuer: expected a text')
  if (jwksUri !== undefined && typeof jwksUri !== 'string')
    throw new JwtRuleError('invalid JWT rule: jwks_uri: expected a text')
  if (!Array.isArray(audiences) || !audiences.every((audience) => typeof audience === 'string')) {
    throw new JwtRuleError('invalid JWT rule: audiences: expected a list of texts')
  }
  return { issuer, audiences, ...(jwksUri === undefined ? {} : { jwksUri }) }
}

export interface OidcOptions {
  readonly rule: JwtRule
  readonly trustDomain: () => string
  /** The issuer's keys; by default fetched from the rule's address. */
  readonly keys?: JWTVerifyGetKey
}

/** Symmetric algorithms are left out: our side must never share a secret with an issuer. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

export function createOidcAuthenticator({ rule, trustDomain, keys = keysOf(rule) }: OidcOptions): Authenticator {
  const options = {
    issuer: rule.issuer,
    audience: [...rule.audiences],
    algorithms,
    requiredClaims: ['exp', 'sub'],
  }

  return {
    name: 'JwtAuthenticator',
    async authenticate(request) {
      const token = bearerToken(request)
      if (rule.audiences.length === 0)
        throw new AuthenticationError('the JWT rule names no audience, so that no token fits it')
      const subject = await verifiedSubject(token)
      const account = serviceAccountOfSubject(subject)
      if (account === undefined) throw new AuthenticationError(`invalid sub ${JSON.stringify(subject)} in the token`)
      return { identities: [buildSpiffe({ trustDomain: trustDomain(), ...account })], source: 'oidc' }
    },
  }

  async function verifiedSubject(token: string): Promise<string> {
    try {
      const { sub } = await verifiedPayload(token, keys, options)
      return sub ?? ''
    } catch (cause) {
      throw new AuthenticationError(
        `failed to verify the JWT token: ${cause instanceof Error ? cause.message : cause}`,
        { cause },
      )
    }
  }
}

async function verifiedPayload(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions) {
  try {
    return (await jwtVerify(token, keys, options)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    // A token need not say which of the issuer's keys has signed it.
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload
      } catch (cause) {
        if (!(cause instanceof errors.JWSSignatureVerificationFailed)) throw cause
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

const discoveryPauseMs = 10_000
/** A key that is not known yet has the keys read again, but not more often than this. */
const refreshPauseMs = 1_000

/**
 * The keys that the issuer publishes. Their address is looked up when the first token wants them; when that fails, tokens have to wait a
 * while for the next try, so that those who send some cannot have us ask the issuer all the time.
 */
function keysOf({ issuer, jwksUri }: JwtRule): JWTVerifyGetKey {
  let keys: Promise<JWTVerifyGetKey> | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  const find = async () =>
    createRemoteJWKSet(keyAddress(jwksUri ?? (await discoverKeys(issuer))), { cooldownDuration: refreshPauseMs })
  return async (header, token) => {
    if (keys === undefined || performance.now() - triedAt > discoveryPauseMs) {
      triedAt = performance.now()
      const tried = find()
      keys = tried
      tried.then(
        () => {
          triedAt = Number.POSITIVE_INFINITY
        },
        () => {},
      )
    }
    return (await keys)(header, token)
  }
}

/** Whoever can change the keys on their way to us could be anybody. */
function keyAddress(text: string): URL {
  const url = URL.parse(text)
  const isHere = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isHere)) return url
  throw new Error(`${text}: expected an https address of keys`)
}

async function discoverKeys(issuer: string): Promise<string> {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await fetch(keyAddress(address), { signal: AbortSignal.timeout(10_000), redirect: 'error' })
  if (!response.ok) throw new Error(`${address}: status ${response.status}`)
  const configuration = (await response.json()) as Readonly<Record<string, unknown>>
  if (configuration.issuer !== issuer) throw new Error(`${address}: is of another issuer`)
  if (typeof configuration.jwks_uri !== 'string') throw new Error(`${address}: no jwks_uri`)
  return configuration.jwks_uri
}
