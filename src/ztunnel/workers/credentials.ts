// A worker's certificates: those the main thread has are here already, others are asked for once for all who wait.
import type { WorkloadCertificate } from '../../ca/client/index.ts'
import type { TlsCredentials } from '../../hbone/index.ts'
import { spiffeId } from '../decisions/index.ts'
import type { Identity } from '../model.ts'
import type { CertificateNews } from './messages.ts'

export interface CredentialsCache {
  /** The same certificate is the same value. Rejects with what `ask` rejects with. */
  get(identity: Identity): Promise<TlsCredentials>
  /** Takes in what the main thread tells. */
  receive(news: CertificateNews): void
}

export interface CredentialsCacheOptions {
  /** By SPIFFE id. */
  readonly ask: (id: string) => Promise<WorkloadCertificate>
  /** Told of each certificate that comes in, the first time. */
  readonly onCertificate?: (certificate: WorkloadCertificate) => void
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

interface Held {
  readonly credentials: TlsCredentials
  readonly notAfter: number
}

export function createCredentialsCache(options: CredentialsCacheOptions): CredentialsCache {
  const { ask, onCertificate, now = Date.now } = options
  const held = new Map<string, Held>()
  const asking = new Map<string, Promise<TlsCredentials>>()

  function take(id: string, certificate: WorkloadCertificate): TlsCredentials {
    const credentials = credentialsOf(certificate)
    const known = held.get(id)
    if (known !== undefined && isSame(known.credentials, credentials)) return known.credentials
    held.set(id, { credentials, notAfter: certificate.notAfter.getTime() })
    onCertificate?.(certificate)
    return credentials
  }

  async function fetch(id: string): Promise<TlsCredentials> {
    try {
      return take(id, await ask(id))
    } finally {
      asking.delete(id)
    }
  }

  return {
    async get(identity) {
      const id = spiffeId(identity)
      const known = held.get(id)
      if (known !== undefined && now() < known.notAfter) return known.credentials
      const running = asking.get(id) ?? fetch(id)
      asking.set(id, running)
      return running
    },
    receive(news) {
      if (news.kind === 'certificate') take(news.identity, news.certificate)
      else held.delete(news.identity)
    },
  }
}

function credentialsOf({ privateKey, leaf, intermediates, roots }: WorkloadCertificate): TlsCredentials {
  return { privateKey, certificateChain: [leaf, ...intermediates].join('\n'), roots: roots.join('\n') }
}

const isSame = (a: TlsCredentials, b: TlsCredentials): boolean =>
  a.privateKey === b.privateKey && a.certificateChain === b.certificateChain && a.roots === b.roots
