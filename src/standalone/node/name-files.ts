// The /etc/hosts and /etc/resolv.conf of a pod. Pure.
import type { Pod } from './types.ts'

export interface ResolverConfig {
  readonly nameservers: readonly string[]
  readonly search: readonly string[]
  readonly options: readonly string[]
}

export function parseResolvConf(text: string): ResolverConfig {
  const words = text
    .split('\n')
    .map((line) =>
      line
        .replace(/[#;].*$/, '')
        .trim()
        .split(/\s+/),
    )
    .filter(([first]) => first !== '')
  const of = (key: string) => words.filter(([first]) => first === key).map(([, ...rest]) => rest)
  return {
    nameservers: of('nameserver').flat(),
    search: of('search').at(-1) ?? of('domain').at(-1) ?? [],
    options: of('options').flat(),
  }
}

export function formatResolvConf(config: ResolverConfig): string {
  const lines = [
    ...(config.search.length > 0 ? [`search ${config.search.join(' ')}`] : []),
    ...config.nameservers.map((server) => `nameserver ${server}`),
    ...(config.options.length > 0 ? [`options ${config.options.join(' ')}`] : []),
  ]
  return `${lines.join('\n')}\n`
}

/** The resolver configuration that the pod's `dnsPolicy` and `dnsConfig` ask for. */
export function podResolver(
  pod: Pod,
  cluster: { readonly dnsIP: string; readonly domain: string },
  host: ResolverConfig,
): ResolverConfig {
  const { dnsPolicy = 'ClusterFirst', dnsConfig = {}, hostNetwork = false } = pod.spec ?? {}
  const usesCluster = dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork)
  const { domain } = cluster
  const base: ResolverConfig =
    dnsPolicy === 'None'
      ? { nameservers: [], search: [], options: [] }
      : usesCluster
        ? {
            nameservers: [cluster.dnsIP],
            search: [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain, ...host.search],
            options: ['ndots:5'],
          }
        : host
  const own = (dnsConfig.options ?? []).map(({ name = '', value }) => (value === undefined ? name : `${name}:${value}`))
  const named = new Set(own.map((option) => option.split(':')[0]))
  return {
    nameservers: unique([...base.nameservers, ...(dnsConfig.nameservers ?? [])]).slice(0, 3),
    search: unique([...base.search, ...(dnsConfig.searches ?? [])]),
    options: [...base.options.filter((option) => !named.has(option.split(':')[0])), ...own],
  }
}

export function podHostname(pod: Pod, nodeName: string): string {
  return pod.spec?.hostNetwork ? nodeName : (pod.spec?.hostname ?? pod.metadata.name).slice(0, 63).replace(/[-.]+$/, '')
}

export function podHosts(pod: Pod, podIPs: readonly string[], domain: string): string {
  const name = podHostname(pod, '')
  const { subdomain } = pod.spec ?? {}
  const names = subdomain ? `${name}.${subdomain}.${pod.metadata.namespace}.svc.${domain}\t${name}` : name
  const lines = [
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    ...podIPs.map((ip) => `${ip}\t${names}`),
    ...hostAliases(pod),
  ]
  return `${lines.join('\n')}\n`
}

export function hostAliases(pod: Pod): string[] {
  return (pod.spec?.hostAliases ?? []).map(({ ip, hostnames = [] }) => [ip, ...hostnames].join('\t'))
}

function unique(words: readonly string[]): string[] {
  return [...new Set(words)]
}
