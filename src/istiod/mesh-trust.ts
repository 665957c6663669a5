// The roots of a mesh with several: those of the CA, those that mesh config names, and those that other trust domains publish; as one
// resource for proxies.
import { createHash } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { canonicalTrustDomain, createMeshTrustBundle, type MeshTrustBundle } from '../ca/index.ts'
import type { MeshConfig } from '../config/index.ts'
import { mesh as messages } from '../proto/control-plane/index.ts'
import type { EncodedResource, ResourceChange, ResourceSource } from '../xds/index.ts'
import type { MeshAuthority } from './authority.ts'
import { type BundleEndpointsOptions, followBundleEndpoints } from './bundle-endpoints.ts'

export interface MeshTrustOptions extends BundleEndpointsOptions {
  readonly authority: Pick<MeshAuthority, 'rootBundle' | 'subscribe'>
  readonly mesh: {
    readonly current: MeshConfig
    subscribe(listener: () => void): () => void
  }
}

export interface MeshTrust extends Disposable {
  readonly bundle: MeshTrustBundle
  /** The roots as the configuration of proxies. */
  readonly source: ResourceSource
}

const proxyConfigType = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig'
const caSource = 'ca'
const meshSource = 'mesh config'

export function followMeshTrust(options: MeshTrustOptions): MeshTrust {
  const { authority, mesh, log } = options
  const bundle = createMeshTrustBundle()
  const endpoints = followBundleEndpoints(update, options)

  function update(source: string, pems: readonly string[]): void {
    try {
      bundle.update(source, pems)
    } catch (error) {
      log.error('roots are refused; the last ones stay', { from: source, reason: String(error) })
    }
  }

  function takeConfig(): void {
    const named = rootsOfMesh(mesh.current)
    update(meshSource, named.pems)
    for (const skipped of named.foreign)
      log.info('roots of another trust domain are not for the workloads of this mesh', { skipped })
    bundle.keep(new Set([caSource, meshSource, ...named.urls]))
    endpoints.follow(new Set(named.urls))
  }

  const takeRoot = (): void => {
    if (authority.rootBundle !== '') update(caSource, [authority.rootBundle])
  }
  const ends = [authority.subscribe(takeRoot), mesh.subscribe(takeConfig)]
  takeRoot()
  takeConfig()
  return {
    bundle,
    source: proxyConfigSource(bundle),
    [Symbol.dispose]() {
      for (const end of ends) end()
      endpoints[Symbol.dispose]()
    },
  }
}

interface NamedRoots {
  readonly pems: readonly string[]
  readonly urls: readonly string[]
  /** Entries for trust domains that are not this mesh's: its proxies would believe them any identity. */
  readonly foreign: readonly string[]
}

/** Of `caCertificates` what is for the trust domain of this mesh or one of its aliases. Those of signers go with their certificates. */
export function rootsOfMesh(config: Pick<MeshConfig, 'fields' | 'trustDomain' | 'trustDomainAliases'>): NamedRoots {
  const own = new Set([config.trustDomain, ...config.trustDomainAliases].map(canonicalTrustDomain))
  const entries: readonly unknown[] = Array.isArray(config.fields.caCertificates) ? config.fields.caCertificates : []
  const [pems, urls, foreign]: [string[], string[], string[]] = [[], [], []]
  for (const entry of entries) {
    const { pem, spiffeBundleUrl, trustDomains } = (entry ?? {}) as Readonly<Record<string, unknown>>
    const domains = Array.isArray(trustDomains) ? trustDomains.map(String) : []
    const isOurs = domains.length === 0 || domains.some((domain) => own.has(canonicalTrustDomain(domain)))
    if (!isOurs) foreign.push(domains.join(' '))
    else if (typeof pem === 'string' && pem !== '') pems.push(pem)
    else if (typeof spiffeBundleUrl === 'string' && spiffeBundleUrl !== '') urls.push(spiffeBundleUrl)
  }
  return { pems, urls: [...new Set(urls)], foreign }
}

const name = 'default'

function proxyConfigSource(bundle: MeshTrustBundle): ResourceSource {
  const encodedOf = new WeakMap<readonly string[], EncodedResource>()
  const present = (): EncodedResource => {
    const known = encodedOf.get(bundle.roots) ?? encode(bundle.roots)
    encodedOf.set(bundle.roots, known)
    return known
  }
  return {
    typeUrl: proxyConfigType,
    synced: true,
    list: () => [present()],
    get: (wanted) => (wanted === name ? present() : undefined),
    subscribe(listener: (changes: readonly ResourceChange[]) => void) {
      let last = present()
      return bundle.subscribe(() => {
        const old = last
        last = present()
        listener([{ name, old, new: last }])
      })
    },
  }
}

function encode(roots: readonly string[]): EncodedResource {
  const message = create(messages.ProxyConfigSchema, { caCertificatesPem: [...roots] })
  const body = toBinary(messages.ProxyConfigSchema, message)
  const version = createHash('sha256').update(body).digest('base64url').slice(0, 16)
  return { name, aliases: [], version, body }
}
