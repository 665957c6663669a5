// Nobody grants what he does not have: checks writes of roles and bindings against the writer's own rules.
import { forbidden } from '../errors.ts'
import type { AdmissionPlugin, AdmissionRequest, Authorizer, KubeObject } from '../types.ts'
import { type RulesResolver, rulesOfRole } from './rbac.ts'
import { type PolicyRule, uncovered } from './rules.ts'

const group = 'rbac.authorization.k8s.io'

interface RbacObject extends KubeObject {
  readonly rules?: readonly PolicyRule[]
  readonly aggregationRule?: unknown
  readonly roleRef?: { readonly kind: string; readonly name: string }
}

export function createEscalationCheck(
  rulesFor: RulesResolver,
  authorizer: Authorizer,
  objects: () => Parameters<typeof rulesOfRole>[0],
): AdmissionPlugin {
  const may = async (request: AdmissionRequest, verb: string, resource: string, name: string): Promise<boolean> => {
    const { user, namespace } = request
    const attributes = { kind: 'resource', user, verb, group, version: 'v1', resource, name } as const
    const { allowed } = await authorizer.authorize(namespace === undefined ? attributes : { ...attributes, namespace })
    return allowed
  }
  return {
    name: 'RbacEscalationCheck',
    async validate(request) {
      const { kind, user, object, operation, namespace } = request
      if (kind.group !== group || object === undefined || (operation !== 'CREATE' && operation !== 'UPDATE')) return
      if (user.groups.includes('system:masters')) return
      const target = object as RbacObject
      if (grantsTheSame(target, request.oldObject as RbacObject | undefined)) return
      const isRole = kind.plural === 'roles' || kind.plural === 'clusterroles'
      const { roleRef } = target
      const refName = roleRef?.name ?? ''
      const refPlural = roleRef?.kind === 'Role' ? 'roles' : 'clusterroles'
      const isFree = isRole
        ? await may(request, 'escalate', kind.plural, request.name)
        : await may(request, 'bind', refPlural, refName)
      if (isFree) return
      const wanted = isRole
        ? [...(target.rules ?? []), ...(target.aggregationRule === undefined ? [] : [everything])]
        : rulesOfRole(objects(), roleRef?.kind ?? '', refName, namespace)
      const missing = uncovered(rulesFor(user, namespace), wanted)
      if (missing.length === 0) return
      const why = `user "${user.name}" (groups=${JSON.stringify(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${missing.map(show).join('\n')}`
      throw forbidden(kind, request.name, why)
    },
  }
}

function grantsTheSame(target: RbacObject, old: RbacObject | undefined): boolean {
  if (old === undefined) return false
  const granted = (object: RbacObject & { subjects?: unknown }): string =>
    JSON.stringify([object.rules, object.aggregationRule, object.roleRef, object.subjects])
  return granted(target) === granted(old)
}

/** The rules of an aggregated role can become anything. */
const everything: PolicyRule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

function show(rule: PolicyRule): string {
  const fields = Object.entries(rule).map(
    ([name, values]) => `${name[0]?.toUpperCase()}${name.slice(1)}:${JSON.stringify(values)}`,
  )
  return `{${fields.join(', ')}}`
}
