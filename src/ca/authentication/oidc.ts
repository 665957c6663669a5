// Callers known by a token of an OpenID Connect issuer.
import { createRemoteJWKSet, type JWTVerifyGetKey, jwtVerify } from 'jose'
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

export function createOidcAuthenticator({ rule, trustDomain, keys: givenKeys }: OidcOptions): Authenticator {
  let keys = givenKeys

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
      keys ??= createRemoteJWKSet(new URL(rule.jwksUri ?? (await discoverKeys(rule.issuer))))
      const { payload } = await jwtVerify(token, keys, {
        issuer: rule.issuer,
        audience: [...rule.audiences],
        algorithms,
        requiredClaims: ['exp', 'sub'],
      })
      return payload.sub ?? ''
    } catch (cause) {
      throw new AuthenticationError(
        `failed to verify the JWT token: ${cause instanceof Error ? cause.message : cause}`,
        { cause },
      )
    }
  }
}

async function discoverKeys(issuer: string): Promise<string> {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await fetch(address, { signal: AbortSignal.timeout(10_000), redirect: 'error' })
  if (!response.ok) throw new Error(`${address}: status ${response.status}`)
  const configuration = (await response.json()) as Readonly<Record<string, unknown>>
  if (configuration.issuer !== issuer) throw new Error(`${address}: is of another issuer`)
  if (typeof configuration.jwks_uri !== 'string') throw new Error(`${address}: no jwks_uri`)
  return configuration.jwks_uri
}
