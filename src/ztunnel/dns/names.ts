// Which names a query may mean: Kubernetes short forms, the search list, wildcards.

export interface NameContext {
  readonly clientNamespace: string
  readonly clusterDomain: string
  readonly searchDomains: readonly string[]
}

/** A name to look for. `stripped` is the query name without the search domain, where one was taken off. */
export interface CandidateName {
  readonly name: string
  readonly stripped?: string
}

/** The search list of a pod in Kubernetes. */
export function podSearchDomains(namespace: string, clusterDomain: string): readonly string[] {
  return [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain]
}

/** The names to try for a query, in order and without duplicates; compared in lower case. */
export function candidateNames(query: string, context: NameContext): readonly CandidateName[] {
  const found = new Map<string, CandidateName>()
  const add = (name: string, stripped?: string): void => {
    const key = name.toLowerCase()
    if (!found.has(key)) found.set(key, stripped === undefined ? { name: key } : { name: key, stripped })
  }
  add(query)
  for (const name of expandName(query, context)) add(name)
  for (const domain of context.searchDomains) {
    const suffix = `.${domain.toLowerCase()}`
    if (!query.toLowerCase().endsWith(suffix) || query.length === suffix.length) continue
    const stripped = query.slice(0, -suffix.length)
    add(stripped, stripped)
    for (const name of expandName(stripped, context)) add(name, stripped)
  }
  return [...found.values()]
}

/** The Kubernetes names a short name may stand for. */
export function expandName(
  name: string,
  { clientNamespace, clusterDomain }: Pick<NameContext, 'clientNamespace' | 'clusterDomain'>,
): readonly string[] {
  const labels = name.split('.')
  const last = labels.at(-1)?.toLowerCase()
  const service = `${name}.svc.${clusterDomain}`
  switch (labels.length) {
    case 1:
      return [`${name}.${clientNamespace}.svc.${clusterDomain}`]
    case 2:
      return [service, `${name}.${clientNamespace}.svc.${clusterDomain}`]
    case 3:
      return last === 'svc' ? [`${name}.${clusterDomain}`, service] : [service]
    case 4:
      return last === 'svc' ? [`${name}.${clusterDomain}`] : []
    default:
      return []
  }
}

/** The name itself, then with ever more of its leading labels replaced by `*`. */
export function wildcardForms(name: string): readonly string[] {
  const labels = name.split('.')
  return [name, ...labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`)]
}
