// The ConfigMaps that bring the trust bundle and the revocations into every namespace.

export const rootConfigMapName = 'istio-ca-root-cert'
export const crlConfigMapName = 'istio-ca-crl'

/** Namespaces that get no trust bundle. */
export const namespacesWithoutRoot: ReadonlySet<string> = new Set([
  'kube-public',
  'kube-node-lease',
  'local-path-storage',
])

/** The part of a ConfigMap that is ours; other keys and labels are to be kept. */
export interface DistributedConfigMap {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly data: Readonly<Record<string, string>>
}

export function rootConfigMap(rootBundle: string, name: string = rootConfigMapName): DistributedConfigMap {
  return configMap(name, { 'root-cert.pem': rootBundle })
}

export function crlConfigMap(crl: string, name: string = crlConfigMapName): DistributedConfigMap {
  return configMap(name, { 'ca-crl.pem': crl })
}

function configMap(name: string, data: Readonly<Record<string, string>>): DistributedConfigMap {
  return { metadata: { name, labels: { 'istio.io/config': 'true' } }, data }
}
