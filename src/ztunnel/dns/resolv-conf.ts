// The resolver configuration file: name servers, search list, options.
import { canonicalIp } from '../state/address.ts'

export interface ResolvConf {
  readonly nameservers: readonly string[]
  readonly searchDomains: readonly string[]
  readonly timeoutMs: number
  readonly attempts: number
}

/** Reads the text of /etc/resolv.conf (resolv.conf(5)); what it does not know is skipped, as resolvers do. */
export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = []
  let searchDomains: readonly string[] = []
  let timeoutMs = 5000
  let attempts = 2
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    if (keyword === 'nameserver') {
      const ip = canonicalIp(words[0] ?? '')
      if (ip !== undefined) nameservers.push(ip)
    } else if (keyword === 'search' || keyword === 'domain') {
      searchDomains = words.map((domain) => domain.replace(/\.$/, '').toLowerCase()).filter((domain) => domain !== '')
    } else if (keyword === 'options') {
      for (const word of words) {
        const [, name, value] = /^(timeout|attempts):(\d+)$/.exec(word) ?? []
        if (name === 'timeout') timeoutMs = Math.min(Math.max(Number(value), 1), 30) * 1000
        if (name === 'attempts') attempts = Math.min(Math.max(Number(value), 1), 5)
      }
    }
  }
  return { nameservers, searchDomains, timeoutMs, attempts }
}
