// Callers known by the client certificate of their connection.
import { subjectAltNamesOf } from '../client/index.ts'
import { AuthenticationError, type Authenticator } from './authenticator.ts'
import { refuseDisguised } from './disguised-identity.ts'

export function createClientCertificateAuthenticator(): Authenticator {
  return {
    name: 'ClientCertAuthenticator',
    async authenticate({ peerAuthentication }) {
      if (peerAuthentication === undefined) throw new AuthenticationError('no client certificate is presented')
      if (peerAuthentication.kind !== 'tls') {
        throw new AuthenticationError(`unsupported auth type: "${peerAuthentication.name}"`)
      }
      const leaf = peerAuthentication.verifiedChains[0]?.[0]
      if (leaf === undefined) {
        const { unverified } = peerAuthentication
        throw new AuthenticationError(`no verified chain is found${unverified === undefined ? '' : `: ${unverified}`}`)
      }
      const names = subjectAltNamesOf(leaf)
      if (names === undefined) throw new AuthenticationError('the SAN extension does not exist')
      const counting = names.filter(({ kind }) => kind === 'uri' || kind === 'dns' || kind === 'ip')
      for (const { kind, value } of counting) if (kind !== 'uri') refuseDisguised(value)
      const identities = counting.map(({ value }) => value)
      return { identities, source: 'client-certificate' }
    },
  }
}
