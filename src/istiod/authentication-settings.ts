// Whose proof of who they are is accepted: tokens for whom, from which issuers, and gateways that vouch for others.
import { type JwtRule, JwtRuleError, parseJwtRule, trustOfPeers } from '../ca/index.ts'
import { type Environment, SettingError, settingReader } from './setting-reader.ts'

export interface AuthenticationSettings {
  /** Of tokens of the clusters; at least one. */
  readonly tokenAudiences: readonly string[]
  /** Issuers whose tokens are accepted beside those of the clusters, in the order in which they are tried. */
  readonly tokenRules: readonly JwtRule[]
  /** Gateways that vouch for their clients by a header; empty: none may. */
  readonly trustedGatewayCidrs: readonly string[]
}

/** Throws a SettingError that names the variable. */
export function readAuthenticationSettings(env: Environment): AuthenticationSettings {
  const read = settingReader(env)
  const tokenAudiences = read.list('TOKEN_AUDIENCES', 'istio-ca')
  if (tokenAudiences.length === 0) {
    throw new SettingError('TOKEN_AUDIENCES: expected at least one audience: without one, any token would do')
  }
  return {
    tokenAudiences,
    tokenRules: [...jwtRule(env.JWT_RULE ?? ''), ...tokenIssuer(env)],
    trustedGatewayCidrs: trustedGateways(read.list('TRUSTED_GATEWAY_CIDR', '')),
  }
}

function jwtRule(text: string): readonly JwtRule[] {
  if (text === '') return []
  try {
    return [parseJwtRule(text)]
  } catch (cause) {
    if (!(cause instanceof JwtRuleError)) throw cause
    throw new SettingError(`JWT_RULE: ${cause.message}`, { cause })
  }
}

/** In a cluster, its API server reviews tokens: another issuer is for control planes outside of one. */
function tokenIssuer(env: Environment): readonly JwtRule[] {
  const issuer = env.TOKEN_ISSUER ?? ''
  const audience = env.AUDIENCE ?? ''
  if (issuer === '' || (env.KUBERNETES_SERVICE_HOST ?? '') !== '') return []
  if (audience === '') throw new SettingError('AUDIENCE: expected the audience of the tokens of TOKEN_ISSUER')
  return [{ issuer, audiences: [audience] }]
}

function trustedGateways(cidrs: readonly string[]): readonly string[] {
  try {
    trustOfPeers({ trustedCidrs: cidrs, trustsLoopback: false })
  } catch (cause) {
    throw new SettingError(`TRUSTED_GATEWAY_CIDR: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
  return cidrs
}
