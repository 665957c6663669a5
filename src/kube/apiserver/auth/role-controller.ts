// Creates the bootstrap roles, and keeps the rules of aggregated roles equal to those of the roles they select.
import type { ApiCore, KindDefinition, KubeObject } from '../types.ts'
import { type BootstrapRole, bootstrapRoles } from './bootstrap-roles.ts'
import type { PolicyRule } from './rules.ts'

const group = 'rbac.authorization.k8s.io'
const apiVersion = `${group}/v1`

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
}

interface ClusterRole extends KubeObject {
  rules?: readonly PolicyRule[]
  aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] }
}

/** Creates what is missing and restores bootstrap rules that were changed; returns the function that ends the watch. */
export async function startRoles(core: ApiCore): Promise<() => void> {
  const roles = kindOf(core, 'ClusterRole')
  const bindings = kindOf(core, 'ClusterRoleBinding')
  for (const role of bootstrapRoles) {
    await ensureRole(core, roles, role)
    await ensureBinding(core, bindings, role)
  }
  return keepAggregated(core, roles)
}

function kindOf(core: ApiCore, kind: string): KindDefinition {
  const definition = core.kinds.byKind(apiVersion, kind)
  if (definition === undefined) throw new Error(`${apiVersion} ${kind} is not served`)
  return definition
}

async function ensureRole(core: ApiCore, kind: KindDefinition, role: (typeof bootstrapRoles)[number]): Promise<void> {
  const existing = core.objects.get(group, 'clusterroles', { name: role.name }) as ClusterRole | undefined
  const wanted: ClusterRole = {
    apiVersion,
    kind: 'ClusterRole',
    metadata: {
      name: role.name,
      labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...role.labels },
      annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
    },
    ...(role.aggregates === undefined
      ? {}
      : {
          aggregationRule: {
            clusterRoleSelectors: [
              { matchLabels: { [`rbac.authorization.k8s.io/aggregate-to-${role.aggregates}`]: 'true' } },
            ],
          },
        }),
    rules: role.rules,
  }
  if (existing === undefined) return void (await core.create(kind, wanted))
  const keepsOwn = existing.metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'] === 'false'
  const isCurrent = role.aggregates !== undefined || JSON.stringify(existing.rules) === JSON.stringify(role.rules)
  if (keepsOwn || isCurrent) return
  await core.update(kind, { ...structuredClone(existing), rules: role.rules } as KubeObject)
}

/** A binding of an earlier version for a role that is bound to nobody now is removed. */
async function ensureBinding(core: ApiCore, kind: KindDefinition, role: BootstrapRole): Promise<void> {
  const { name, groups = [], users = [] } = role
  const existing = core.objects.get(group, 'clusterrolebindings', { name })
  const subjects = [
    ...groups.map((subject) => ({ apiGroup: group, kind: 'Group', name: subject })),
    ...users.map((subject) => ({ apiGroup: group, kind: 'User', name: subject })),
  ]
  if (existing === undefined && subjects.length > 0) {
    await core.create(kind, {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name, labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name },
      subjects,
    } as KubeObject)
  }
  const isOurs = existing?.metadata.labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults'
  if (isOurs && subjects.length === 0) await core.delete(kind, { name })
}

/** Changes come in bursts: one pass runs at a time, and one more when something changed meanwhile. */
function keepAggregated(core: ApiCore, kind: KindDefinition): () => void {
  let isRunning = false
  let isDue = false
  let isEnded = false
  const pass = async (): Promise<void> => {
    isDue = true
    if (isRunning) return
    isRunning = true
    try {
      while (isDue && !isEnded) {
        isDue = false
        await aggregate(core, kind)
      }
    } finally {
      isRunning = false
    }
  }
  const report = (error: unknown): void => {
    process.emitWarning(`aggregated roles are not up to date: ${String(error)}`)
  }
  const unsubscribe = core.objects.subscribe(group, 'clusterroles', () => void pass().catch(report))
  return () => {
    isEnded = true
    unsubscribe()
  }
}

async function aggregate(core: ApiCore, kind: KindDefinition): Promise<void> {
  const roles = (core.objects.list(group, 'clusterroles') as ClusterRole[]).toSorted((a, b) =>
    a.metadata.name < b.metadata.name ? -1 : 1,
  )
  for (const role of roles) {
    const selectors = role.aggregationRule?.clusterRoleSelectors
    if (selectors === undefined) continue
    const rules = roles
      .filter((other) => other !== role && selectors.some((selector) => selects(selector, other)))
      .flatMap((other) => other.rules ?? [])
    const distinct = [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()]
    if (JSON.stringify(distinct) === JSON.stringify(role.rules ?? [])) continue
    await core.update(kind, { ...structuredClone(role), rules: distinct } as KubeObject)
  }
}

function selects(selector: LabelSelector, role: ClusterRole): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {})
  return wanted.length > 0 && wanted.every(([key, value]) => role.metadata.labels?.[key] === value)
}
