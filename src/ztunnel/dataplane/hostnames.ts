// Addresses of workloads that are known by host name only, resolved by this process's own name servers.
import { resolve4, resolve6 } from 'node:dns/promises'
import type { Workload } from '../model.ts'
import { errorTexts } from '../telemetry/index.ts'
import { ConnectionError } from './errors.ts'

export interface HostnameResolver {
  /** One of the workload's addresses, of the family if there is any. Rejects with a ConnectionError. */
  resolve(workload: Workload, family: 4 | 6): Promise<string>
}

export interface HostnameResolverOptions {
  readonly ipv6: boolean
  readonly random: () => number
  readonly now?: () => number
}

interface Answer {
  readonly addresses: readonly string[]
  readonly validUntil: number
}

const maxEntries = 4096

export function createHostnameResolver(options: HostnameResolverOptions): HostnameResolver {
  const { ipv6, random, now = Date.now } = options
  const known = new Map<string, Answer>()
  const asking = new Map<string, Promise<Answer>>()

  async function addresses(hostname: string, family: 4 | 6): Promise<readonly string[]> {
    const key = `${family} ${hostname}`
    const answer = known.get(key)
    if (answer !== undefined && answer.validUntil > now()) return answer.addresses
    const running = asking.get(key) ?? ask(hostname, family).finally(() => asking.delete(key))
    asking.set(key, running)
    const fresh = await running
    known.delete(key)
    known.set(key, fresh)
    for (const oldest of known.keys()) {
      if (known.size <= maxEntries) break
      known.delete(oldest)
    }
    return fresh.addresses
  }

  async function ask(hostname: string, family: 4 | 6): Promise<Answer> {
    const records = await (family === 4 ? resolve4(hostname, { ttl: true }) : resolve6(hostname, { ttl: true })).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENODATA') return []
        throw error
      },
    )
    const ttlSeconds = Math.min(...records.map(({ ttl }) => ttl), 3600)
    return { addresses: records.map(({ address }) => address), validUntil: now() + ttlSeconds * 1000 }
  }

  return {
    async resolve(workload, family) {
      const families = ipv6 ? [family, family === 4 ? 6 : 4] : [4]
      let failure: unknown
      for (const one of families) {
        try {
          const found = await addresses(workload.hostname, one === 4 ? 4 : 6)
          const chosen = found[Math.floor(random() * found.length)]
          if (chosen !== undefined) return chosen
        } catch (error) {
          failure = error
        }
      }
      throw new ConnectionError(
        'CONNECT',
        failure === undefined
          ? errorTexts.resolvedWithoutAddress(workload.uid)
          : errorTexts.unresolvedHostname(workload.uid),
        { cause: failure },
      )
    },
  }
}
