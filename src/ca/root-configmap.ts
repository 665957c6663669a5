// The ConfigMap that brings the trust bundle into every namespace.

export const rootConfigMapName = 'istio-ca-root-cert'

/** Namespaces that get no trust bundle. */
export const namespacesWithoutRoot: ReadonlySet<string> = new Set([
  'kube-public',
  'kube-node-lease',
  'local-path-storage',
])

export interface RootConfigMap {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly data: Readonly<Record<string, string>>
}

/** The part of the ConfigMap that is ours; other keys and labels are to be kept. */
export function rootConfigMap(rootBundle: string, name: string = rootConfigMapName): RootConfigMap {
  return {
    metadata: { name, labels: { 'istio.io/config': 'true' } },
    data: { 'root-cert.pem': rootBundle },
  }
}
