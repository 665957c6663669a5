// Who may see which debug page.
import type { IncomingMessage } from 'node:http'
import { type AuthenticationRequest, type Authenticator, authenticate, parseSpiffe } from '../ca/index.ts'

export interface DebugRights {
  readonly systemNamespace: string
  /** Further namespaces whose identities see everything. */
  readonly allowedNamespaces: readonly string[]
}

/** What a caller may see: everything, or what concerns the proxies of these namespaces. */
export type DebugView =
  | { readonly kind: 'everything' }
  | { readonly kind: 'own'; readonly namespaces: readonly string[] }
  | { readonly kind: 'nothing'; readonly status: 401 | 403 }

/** Pages that any namespace may see for its own proxies. */
const openToAll: ReadonlySet<string> = new Set(['config_dump', 'ndsz', 'edsz'])

/** Whether one of the identities may see the page. */
export function mayDebug(identities: readonly string[], page: string, rights: DebugRights): boolean {
  return viewOf(identities, page, rights).kind !== 'nothing'
}

/** What these identities may see of a page. */
export function viewOf(identities: readonly string[], page: string, rights: DebugRights): DebugView {
  const namespaces = identities.flatMap(namespaceOf)
  const isPrivileged = (namespace: string): boolean =>
    namespace === rights.systemNamespace || rights.allowedNamespaces.includes(namespace)
  if (namespaces.some(isPrivileged)) return { kind: 'everything' }
  return namespaces.length > 0 && openToAll.has(page) ? { kind: 'own', namespaces } : { kind: 'nothing', status: 403 }
}

/** What the sender of an HTTP request may see: on this machine everything, elsewhere what its identity may. */
export async function viewOfRequest(
  request: IncomingMessage,
  page: string,
  options: DebugRights & { readonly authenticators: readonly Authenticator[]; readonly requireAuthentication: boolean },
): Promise<DebugView> {
  if (!options.requireAuthentication || isFromHere(request)) return { kind: 'everything' }
  const outcome = await authenticate(options.authenticators, requestOf(request))
  return outcome.kind === 'refused'
    ? { kind: 'nothing', status: 401 }
    : viewOf(outcome.caller.identities, page, options)
}

function namespaceOf(identity: string): string[] {
  try {
    const { namespace } = parseSpiffe(identity)
    return namespace === '' ? [] : [namespace]
  } catch {
    return []
  }
}

function requestOf(request: IncomingMessage): AuthenticationRequest {
  return {
    peerAddress: `${request.socket.remoteAddress ?? ''}:${request.socket.remotePort ?? 0}`,
    isHttp: true,
    header: (name) => [request.headers[name] ?? []].flat(),
  }
}

/** From a process of this machine that means it: a web page in a browser here names another host, or is told by its browser to be of another site. */
export function isFromHere({ socket, headers }: IncomingMessage): boolean {
  if (!isLoopback(socket.remoteAddress ?? '')) return false
  if (!['none', 'same-origin', undefined].includes([headers['sec-fetch-site']].flat()[0])) return false
  const host = URL.parse(`http://${headers.host ?? ''}`)?.hostname ?? ''
  return host === 'localhost' || host === '[::1]' || /^127\./.test(host)
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}
