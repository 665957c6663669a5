// Whose word counts for the workloads of other trust domains: by domain, the roots that mesh config or SPIFFE_BUNDLE_ENDPOINTS name for it.
import { X509Certificate } from 'node:crypto'
import { canonicalTrustDomain, createMeshTrustBundle, type ForeignRoots, type MeshTrustBundle } from '../ca/index.ts'
import type { MeshConfig } from '../config/index.ts'
import { type BundleEndpointsOptions, followBundleEndpoints } from './bundle-endpoints.ts'

export interface ForeignTrustOptions extends BundleEndpointsOptions {
  readonly mesh: {
    readonly current: Pick<MeshConfig, 'fields' | 'trustDomain' | 'trustDomainAliases'>
    subscribe(listener: () => void): () => void
  }
  /** Addresses of bundles, with the trust domain of each. */
  readonly endpoints: readonly BundleEndpoint[]
}

export interface BundleEndpoint {
  readonly trustDomain: string
  readonly url: string
}

export interface ForeignTrust extends Disposable {
  readonly rootsOf: ForeignRoots
}

interface ForeignSources {
  readonly pems: readonly string[]
  readonly urls: readonly string[]
}

const meshSource = 'mesh config'

export function followForeignTrust(options: ForeignTrustOptions): ForeignTrust {
  const { mesh, log } = options
  const bundles = new Map<string, MeshTrustBundle>()
  /** Parsed once for each state of a bundle. */
  const parsed = new WeakMap<readonly string[], readonly X509Certificate[]>()
  let wanted: ReadonlyMap<string, ForeignSources> = new Map()

  function update(domain: string, source: string, pems: readonly string[]): void {
    try {
      bundles.get(domain)?.update(source, pems)
    } catch (error) {
      const reason = String(error)
      log.error('roots of another trust domain are refused; the last ones stay', { domain, from: source, reason })
    }
  }

  const endpoints = followBundleEndpoints((url, roots) => {
    for (const [domain, { urls }] of wanted) if (urls.includes(url)) update(domain, url, roots)
  }, options)

  function take(): void {
    const before = wanted
    wanted = foreignSources(mesh.current, options.endpoints)
    for (const domain of bundles.keys()) {
      if (wanted.has(domain)) continue
      bundles.delete(domain)
      log.info('clients of a trust domain are known no more', { domain })
    }
    for (const [domain, { pems, urls }] of wanted) {
      if (!bundles.has(domain)) {
        bundles.set(domain, createMeshTrustBundle())
        log.info('clients of another trust domain are known by its own roots', { domain })
      }
      update(domain, meshSource, pems)
      bundles.get(domain)?.keep(new Set([meshSource, ...urls]))
    }
    const all = new Set([...wanted.values()].flatMap(({ urls }) => urls))
    // An address that was named by other domains before is read anew, for those of now.
    endpoints.follow(new Set([...all].filter((url) => namedBy(url, wanted) === namedBy(url, before))))
    endpoints.follow(all)
  }

  const end = mesh.subscribe(take)
  take()
  return {
    rootsOf(trustDomain) {
      const roots = bundles.get(canonicalTrustDomain(trustDomain))?.roots
      if (roots === undefined) return []
      const known = parsed.get(roots) ?? roots.map((pem) => new X509Certificate(pem))
      parsed.set(roots, known)
      return known
    },
    [Symbol.dispose]() {
      end()
      endpoints[Symbol.dispose]()
    },
  }
}

function namedBy(url: string, sources: ReadonlyMap<string, ForeignSources>): string {
  return [...sources].flatMap(([domain, { urls }]) => (urls.includes(url) ? [domain] : [])).join(' ')
}

/** By trust domain, without this mesh's own and its aliases: for these its own roots count, and no others. */
export function foreignSources(
  config: ForeignTrustOptions['mesh']['current'],
  endpoints: readonly BundleEndpoint[],
): ReadonlyMap<string, ForeignSources> {
  const own = new Set([config.trustDomain, ...config.trustDomainAliases].map(canonicalTrustDomain))
  const found = new Map<string, { pems: string[]; urls: string[] }>()
  const add = (domains: readonly string[], pem: unknown, url: unknown): void => {
    for (const domain of new Set(domains.map(canonicalTrustDomain))) {
      if (domain === '' || own.has(domain)) continue
      const sources = found.get(domain) ?? { pems: [], urls: [] }
      found.set(domain, sources)
      if (typeof pem === 'string' && pem !== '') sources.pems.push(pem)
      else if (typeof url === 'string' && url !== '' && !sources.urls.includes(url)) sources.urls.push(url)
    }
  }
  const entries: readonly unknown[] = Array.isArray(config.fields.caCertificates) ? config.fields.caCertificates : []
  for (const entry of entries) {
    const { pem, spiffeBundleUrl, trustDomains } = (entry ?? {}) as Readonly<Record<string, unknown>>
    add(Array.isArray(trustDomains) ? trustDomains.map(String) : [], pem, spiffeBundleUrl)
  }
  for (const { trustDomain, url } of endpoints) add([trustDomain], undefined, url)
  return found
}
