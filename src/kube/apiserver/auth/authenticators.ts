// Who sends a request: by service account token or by client certificate.
import type { PeerCertificate } from 'node:tls'
import { unauthorized } from '../errors.ts'
import type { AuthenticatedUser, Authenticator, ObjectReader } from '../types.ts'
import { type TokenAuthority, TokenError } from './tokens.ts'

/** `objects` is asked at each request: the store opens after the authenticators are made. */
export function createTokenAuthenticator(tokens: TokenAuthority, objects: () => ObjectReader): Authenticator {
  return {
    async authenticate({ headers }) {
      const [scheme, token] = (headers.authorization ?? '').trim().split(/\s+/, 2)
      if (scheme?.toLowerCase() !== 'bearer' || token === undefined) return undefined
      try {
        return (await tokens.verify(token, tokens.apiAudiences, objects())).user
      } catch (error) {
        if (error instanceof TokenError) throw unauthorized()
        throw error
      }
    },
  }
}

const clientAuthentication = '1.3.6.1.5.5.7.3.2'

/** The certificate's common name is the user, its organizations are the groups. */
export function createCertificateAuthenticator(): Authenticator {
  return {
    async authenticate({ certificate }) {
      return certificate === undefined ? undefined : userOfCertificate(certificate)
    },
  }
}

function userOfCertificate(certificate: PeerCertificate): AuthenticatedUser {
  const { CN: name, O: organization } = certificate.subject as {
    CN?: string | string[]
    O?: string | string[]
  }
  const forClients = certificate.ext_key_usage?.includes(clientAuthentication) === true
  const isCurrent = Date.parse(certificate.valid_to) > Date.now() && Date.parse(certificate.valid_from) <= Date.now()
  if (typeof name !== 'string' || name === '' || !forClients || !isCurrent) throw unauthorized()
  const groups = typeof organization === 'string' ? [organization] : (organization ?? [])
  return {
    name,
    groups: [...groups, 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/credential-id': [
        `X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
      ],
    },
  }
}
