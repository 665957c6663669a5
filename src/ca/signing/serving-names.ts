// The DNS names that the control plane's own certificate carries.

export interface ServingNameOptions {
  readonly namespace: string
  /** `host` or `host:port`. */
  readonly discoveryAddress: string
  readonly customHosts: readonly string[]
  readonly revision: string
}

/** Sorted, each once. */
export function servingNames({ namespace, discoveryAddress, customHosts, revision }: ServingNameOptions): string[] {
  const host = discoveryAddress.replace(/:\d+$/, '')
  const services = ['istiod', 'istiod-remote', 'istio-pilot']
  if (revision !== '' && revision !== 'default') services.push(`istiod-${revision}`)
  const names = [host, ...customHosts.map((name) => name.trim()), ...services.map((name) => `${name}.${namespace}.svc`)]
  return [...new Set(names.filter((name) => name !== ''))].sort()
}
