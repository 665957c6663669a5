// Callers behind a trusted gateway, known by the client certificate that the gateway saw (x-forwarded-client-cert).
import { BlockList, isIP } from 'node:net'
import { AuthenticationError, type Authenticator } from './authenticator.ts'
import { refuseDisguised } from './disguised-identity.ts'
import { commonNamesOf } from './subject-name.ts'

export interface XfccOptions {
  /** Networks of the gateways; an address without a prefix length is a host. */
  readonly trustedCidrs: readonly string[]
  /** Trust peers on loopback. Whoever shares the host can then name any identity. */
  readonly trustsLoopback: boolean
}

export function createXfccAuthenticator(options: XfccOptions): Authenticator {
  const isTrusted = trustOfPeers(options)
  return {
    name: 'XfccAuthenticator',
    async authenticate(request) {
      const { peerAddress } = request
      const headers = request.header('x-forwarded-client-cert').filter((value) => value !== '')
      if (peerAddress === '' || headers.length === 0) {
        throw new AuthenticationError(`caller from ${peerAddress} does not have Xfcc header`)
      }
      if (!isTrusted(peerAddress)) {
        throw new AuthenticationError(
          `caller from ${peerAddress} is not in the trusted network. XfccAuthenticator can not be used`,
        )
      }
      return { identities: identitiesOfXfcc(headers.join(',')), source: 'xfcc' }
    },
  }
}

/** Returns the function that tells whether the peer at `ip:port` may speak for others. Throws for a CIDR that is none. */
export function trustOfPeers({ trustedCidrs, trustsLoopback }: XfccOptions): (peerAddress: string) => boolean {
  const trusted = new BlockList()
  if (trustsLoopback) {
    trusted.addSubnet('127.0.0.0', 8, 'ipv4')
    trusted.addAddress('::1', 'ipv6')
  }
  for (const cidr of trustedCidrs.map((text) => text.trim()).filter((text) => text !== '')) {
    const [address = '', length, ...more] = cidr.split('/')
    const family = isIP(address)
    const longest = family === 6 ? 128 : 32
    const prefix = length === undefined ? longest : /^\d+$/.test(length) ? Number(length) : Number.NaN
    if (family === 0 || address.includes('%') || more.length > 0 || !(prefix <= longest)) {
      throw new Error(`trusted gateway '${cidr}': expected an IP address or a CIDR`)
    }
    trusted.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
  return (peerAddress) => {
    const ip = /^\[?([^[\]]+)\]?:\d+$/.exec(peerAddress)?.[1]?.replace(/^::ffff:(?=\d+\.)/i, '')
    if (ip === undefined || isIP(ip) === 0) return false
    return trusted.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The identities of all elements in order: URIs, DNS names and the subject's common name of each. Throws an AuthenticationError. */
export function identitiesOfXfcc(header: string): string[] {
  return splitOutsideQuotes(header, ',').flatMap((element) => {
    const found = { uri: [] as string[], dns: [] as string[], cn: [] as string[] }
    for (const pair of splitOutsideQuotes(element, ';')) {
      const equals = pair.indexOf('=')
      if (equals <= 0)
        throw new AuthenticationError(`error in parsing xfcc header: invalid pair ${JSON.stringify(pair)}`)
      const key = pair.slice(0, equals).trim().toLowerCase()
      const value = unquote(pair.slice(equals + 1).trim())
      if (value === '') continue
      if (key === 'uri') found.uri.push(value)
      else if (key === 'dns') found.dns.push(value)
      else if (key === 'subject') found.cn.push(...commonNamesOf(value))
      else if (!['by', 'hash', 'cert', 'chain'].includes(key)) {
        throw new AuthenticationError(`error in parsing xfcc header: unknown key ${JSON.stringify(key)}`)
      }
    }
    for (const name of [...found.dns, ...found.cn]) refuseDisguised(name)
    return [...found.uri, ...found.dns, ...found.cn]
  })
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    if (isQuoted && text[at] === '\\') at += 1
    else if (text[at] === '"') isQuoted = !isQuoted
    else if (!isQuoted && text[at] === separator) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  if (isQuoted) throw new AuthenticationError('error in parsing xfcc header: quote without an end')
  parts.push(text.slice(start))
  return parts
}

/** Proxies escape quotes, and nothing else: other backslashes belong to the value. */
function unquote(value: string): string {
  if (!value.includes('"')) return value
  const inside = /^"((?:[^"\\]|\\.)*)"$/s.exec(value)?.[1]
  if (inside === undefined) {
    throw new AuthenticationError(`error in parsing xfcc header: quotes inside of ${JSON.stringify(value)}`)
  }
  return inside.replaceAll('\\"', '"')
}
