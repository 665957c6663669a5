// RBAC rules: which requests a rule allows, and which rules a set of rules covers.
import type { AuthorizationAttributes } from '../types.ts'

export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

export function ruleAllows(rule: PolicyRule, attributes: AuthorizationAttributes): boolean {
  if (!includes(rule.verbs, attributes.verb)) return false
  if (attributes.kind === 'path') return (rule.nonResourceURLs ?? []).some((url) => pathMatches(url, attributes.path))
  const { resourceNames = [] } = rule
  return (
    includes(rule.apiGroups, attributes.group) &&
    resourceMatches(rule.resources ?? [], attributes.resource, attributes.subresource) &&
    (resourceNames.length === 0 || (attributes.name !== undefined && resourceNames.includes(attributes.name)))
  )
}

/** The part of `wanted` that `owned` does not allow; empty when all of it is. */
export function uncovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): readonly PolicyRule[] {
  return wanted.flatMap(atoms).filter((atom) => !owned.some((rule) => covers(rule, atom)))
}

function includes(values: readonly string[] | undefined, value: string): boolean {
  return values?.some((allowed) => allowed === '*' || allowed === value) === true
}

function resourceMatches(allowed: readonly string[], resource: string, subresource: string | undefined): boolean {
  const full = subresource === undefined ? resource : `${resource}/${subresource}`
  return allowed.some(
    (entry) => entry === '*' || entry === full || (subresource !== undefined && entry === `*/${subresource}`),
  )
}

function pathMatches(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1))
}

/** One rule for each combination of verb, group, resource and name. */
function atoms(rule: PolicyRule): PolicyRule[] {
  const { resourceNames = [], nonResourceURLs = [] } = rule
  const paths = rule.verbs.flatMap((verb) => nonResourceURLs.map((url) => ({ verbs: [verb], nonResourceURLs: [url] })))
  const names = resourceNames.length === 0 ? [undefined] : resourceNames
  const resources = rule.verbs.flatMap((verb) =>
    (rule.apiGroups ?? []).flatMap((group) =>
      (rule.resources ?? []).flatMap((resource) =>
        names.map((name) => ({
          verbs: [verb],
          apiGroups: [group],
          resources: [resource],
          ...(name === undefined ? {} : { resourceNames: [name] }),
        })),
      ),
    ),
  )
  return [...paths, ...resources]
}

function covers(rule: PolicyRule, atom: PolicyRule): boolean {
  const [verb = ''] = atom.verbs
  if (!includes(rule.verbs, verb)) return false
  const [url] = atom.nonResourceURLs ?? []
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => pathMatches(pattern, url))
  const [[group = ''] = [], [resource = ''] = [], [name] = []] = [atom.apiGroups, atom.resources, atom.resourceNames]
  const { resourceNames = [] } = rule
  const [base = '', subresource] = resource.split('/', 2)
  return (
    includes(rule.apiGroups, group) &&
    resourceMatches(rule.resources ?? [], base, subresource) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  )
}
