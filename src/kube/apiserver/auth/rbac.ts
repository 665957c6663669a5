// The RBAC authorizer: roles and bindings from the store decide; system:masters may do everything.
import type { AuthenticatedUser, Authorizer, KubeObject, ObjectReader } from '../types.ts'
import { type PolicyRule, ruleAllows } from './rules.ts'

const group = 'rbac.authorization.k8s.io'

interface Subject {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

interface Binding extends KubeObject {
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly Subject[]
}

interface Role extends KubeObject {
  readonly rules?: readonly PolicyRule[]
}

/** All rules that apply to a user in a namespace; without one, those of the whole cluster. */
export type RulesResolver = (user: AuthenticatedUser, namespace?: string) => readonly PolicyRule[]

/** `objects` is asked at each request: the store opens after the authorizer is made. */
export function createRulesResolver(objects: () => ObjectReader): RulesResolver {
  return (user, namespace) => {
    const reader = objects()
    const cluster = (reader.list(group, 'clusterrolebindings') as Binding[]).filter((binding) => isFor(binding, user))
    const local =
      namespace === undefined
        ? []
        : (reader.list(group, 'rolebindings', namespace) as Binding[]).filter((binding) => isFor(binding, user))
    return [...cluster, ...local].flatMap((binding) => rulesOf(reader, binding))
  }
}

export function createRbacAuthorizer(rulesFor: RulesResolver): Authorizer {
  return {
    async authorize(attributes) {
      const { user } = attributes
      if (user.groups.includes('system:masters')) return { allowed: true }
      const namespace = attributes.kind === 'resource' ? attributes.namespace : undefined
      return { allowed: rulesFor(user, namespace).some((rule) => ruleAllows(rule, attributes)) }
    },
  }
}

export function rulesOfRole(
  objects: ObjectReader,
  kind: string,
  name: string,
  namespace?: string,
): readonly PolicyRule[] {
  const key = kind === 'Role' && namespace !== undefined ? { namespace, name } : { name }
  const role = objects.get(group, kind === 'Role' ? 'roles' : 'clusterroles', key) as Role | undefined
  return role?.rules ?? []
}

function rulesOf(objects: ObjectReader, binding: Binding): readonly PolicyRule[] {
  const { roleRef, metadata } = binding
  return roleRef === undefined ? [] : rulesOfRole(objects, roleRef.kind, roleRef.name, metadata.namespace)
}

function isFor(binding: Binding, user: AuthenticatedUser): boolean {
  return (binding.subjects ?? []).some((subject) => {
    switch (subject.kind) {
      case 'User':
        return subject.name === user.name
      case 'Group':
        return user.groups.includes(subject.name)
      case 'ServiceAccount': {
        const namespace = subject.namespace ?? binding.metadata.namespace
        return user.name === `system:serviceaccount:${namespace}:${subject.name}`
      }
      default:
        return false
    }
  })
}
