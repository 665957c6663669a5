// What a DNS query of a meshed pod is answered with, from the services of the mesh alone.
import { allowsFamily } from '../decisions/backends.ts'
import type { Service, Workload } from '../model.ts'
import { ipFamily } from '../state/address.ts'
import { isVisible, type MeshView, usableEndpoints } from '../state/view.ts'
import { type CandidateName, candidateNames, wildcardForms } from './names.ts'

export interface DnsQuestion {
  /** Without the trailing dot, in the case of the query. */
  readonly name: string
  readonly type: string
}

export interface DnsAnswerOptions {
  readonly clusterDomain: string
  readonly searchDomains: readonly string[]
  readonly ipv6Enabled: boolean
  readonly preferredServiceNamespace?: string
  readonly random: () => number
}

export type DnsRecord =
  | { readonly type: 'A' | 'AAAA'; readonly name: string; readonly data: string }
  | { readonly type: 'CNAME'; readonly name: string; readonly data: string }

export type DnsDecision =
  | { readonly kind: 'forward'; readonly reason: string }
  | {
      readonly kind: 'answer'
      readonly records: readonly DnsRecord[]
      readonly service: Service
      /** `success`, `no records` or `service does not support this record type`. */
      readonly reason: string
    }

/** Decides for a query of the workload `source`. An empty answer means: the name exists, records of this type do not. */
export function answer(
  view: MeshView,
  source: Workload,
  question: DnsQuestion,
  options: DnsAnswerOptions,
): DnsDecision {
  const { type } = question
  if (type !== 'A' && type !== 'AAAA') return { kind: 'forward', reason: 'not an address query' }
  const found = findService(view, source, question.name, options)
  if (found === undefined) return { kind: 'forward', reason: 'no service has the name' }
  const { service, candidate } = found
  const family = type === 'A' ? 4 : 6
  if ((family === 6 && !options.ipv6Enabled) || !allowsFamily(service, family)) {
    return { kind: 'answer', records: [], service, reason: 'service does not support this record type' }
  }
  const addresses = shuffled(addressesOf(view, source, service, family), options.random)
  if (addresses.length === 0) return { kind: 'answer', records: [], service, reason: 'no records' }
  const alias = service.hostname.startsWith('*.') ? undefined : candidate.stripped
  const owner = alias ?? question.name
  const records: DnsRecord[] = addresses.map((data) => ({ type, name: owner, data }))
  if (alias !== undefined) records.unshift({ type: 'CNAME', name: question.name, data: alias })
  return { kind: 'answer', records, service, reason: 'success' }
}

function findService(
  view: MeshView,
  source: Workload,
  query: string,
  options: DnsAnswerOptions,
): { readonly service: Service; readonly candidate: CandidateName } | undefined {
  const context = { ...options, clientNamespace: source.namespace }
  for (const candidate of candidateNames(query, context)) {
    for (const name of wildcardForms(candidate.name)) {
      const service = preferred(view.servicesByHostname(name), source.namespace, options)
      if (service !== undefined) return { service, candidate }
    }
  }
  return undefined
}

function preferred(
  services: readonly Service[],
  clientNamespace: string,
  options: DnsAnswerOptions,
): Service | undefined {
  const kubernetes = `.svc.${options.clusterDomain}`.toLowerCase()
  const usable = services.filter(
    (service) =>
      isVisible(service, clientNamespace) &&
      (service.vips.length > 0 || service.hostname.toLowerCase().endsWith(kubernetes)),
  )
  return (
    usable.find((service) => service.namespace === clientNamespace) ??
    usable.find((service) => service.canonical) ??
    usable.find((service) => service.namespace === options.preferredServiceNamespace) ??
    usable[0]
  )
}

function addressesOf(view: MeshView, source: Workload, service: Service, family: 4 | 6): string[] {
  if (service.vips.length > 0) {
    return service.vips
      .filter((vip) => vip.network === source.network && ipFamily(vip.ip) === family)
      .map((vip) => vip.ip)
  }
  const addresses = new Set<string>()
  for (const { workload } of usableEndpoints(view, service)) {
    const ip = workload.addresses.find((one) => ipFamily(one) === family)
    if (ip !== undefined) addresses.add(ip)
  }
  return [...addresses]
}

function shuffled(items: readonly string[], random: () => number): readonly string[] {
  const result = [...items]
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const [a, b] = [result[last], result[other]]
    if (a === undefined || b === undefined) break
    result[last] = b
    result[other] = a
  }
  return result
}
