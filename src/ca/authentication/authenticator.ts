// Who a request comes from: authenticators are tried in order, the first that accepts decides.
import type { X509Certificate } from 'node:crypto'
import type { Caller } from '../types.ts'

/** How the peer of a connection was authenticated by the transport. */
export type PeerAuthentication =
  /** Chains, leaf first, that were verified against our roots: unverified ones must never be put here. */
  | {
      readonly kind: 'tls'
      readonly verifiedChains: readonly (readonly X509Certificate[])[]
      /** Why there is none, where that is known. */
      readonly unverified?: string
    }
  | { readonly kind: 'other'; readonly name: string }

/** What authenticators look at: the connection and the headers (HTTP or gRPC metadata), whatever the request asks for. */
export interface AuthenticationRequest {
  /** `ip:port` of the peer, empty when unknown. */
  readonly peerAddress: string
  readonly peerAuthentication?: PeerAuthentication
  /** Of an HTTP request, not a gRPC call: the token may come with the scheme `Istio`, too. */
  readonly isHttp?: boolean
  /** All values of a header; the name is in lower case. */
  header(name: string): readonly string[]
  /** Told once the caller has proved who it is. */
  accepted?(): void
}

export interface Authenticator {
  readonly name: string
  /** Rejects with an AuthenticationError. */
  authenticate(request: AuthenticationRequest): Promise<Caller>
}

export class AuthenticationError extends Error {
  readonly code = 'UNAUTHENTICATED'
}

export type Authentication =
  | { readonly kind: 'accepted'; readonly caller: Caller }
  /** For the log only: a caller is not told why. */
  | {
      readonly kind: 'refused'
      readonly reasons: readonly string[]
      /** One authenticator knew the caller, but no identity of it. */
      readonly isNameless: boolean
    }

/** Never rejects. A caller without any identity is not accepted. */
export async function authenticate(
  authenticators: readonly Authenticator[],
  request: AuthenticationRequest,
): Promise<Authentication> {
  const reasons: string[] = []
  let isNameless = false
  for (const authenticator of authenticators) {
    try {
      const caller = await authenticator.authenticate(request)
      if (caller.identities.length > 0) {
        request.accepted?.()
        return { kind: 'accepted', caller }
      }
      isNameless = true
      reasons.push(`${authenticator.name}: no identity`)
    } catch (error) {
      reasons.push(`${authenticator.name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { kind: 'refused', reasons, isNameless }
}

/** The bearer token among the values of the authorization header. Throws an AuthenticationError. */
export function bearerToken(request: AuthenticationRequest): string {
  const pattern = request.isHttp === true ? /^(?:Bearer|Istio) (.+)$/ : /^Bearer (.+)$/
  for (const value of request.header('authorization')) {
    const token = pattern.exec(value)?.[1]?.trim()
    if (token !== undefined && token !== '') return token
  }
  throw new AuthenticationError('no bearer token exists in HTTP authorization header')
}
