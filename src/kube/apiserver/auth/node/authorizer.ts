// What nodes may do: read what their own pods need, and write themselves. What they write is limited further by admission.
// The rules are those of the Node authorization mode: https://kubernetes.io/docs/reference/access-authn-authz/node/
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer, ObjectReader } from '../../types.ts'
import { ruleAllows } from '../rules.ts'
import { nodeOfUser } from './identity.ts'
import type { NodePods } from './node-pods.ts'
import { nodeRules } from './rules.ts'

type ResourceAttributes = Extract<AuthorizationAttributes, { kind: 'resource' }>

const allowed: AuthorizationDecision = { allowed: true }
const no = (reason: string): AuthorizationDecision => ({ allowed: false, reason })

const reads = ['get', 'list', 'watch']
const leaseNamespace = 'kube-node-lease'

/** `pods` and `objects` are asked at each request: the store opens after the authorizer is made. */
export function createNodeAuthorizer(pods: () => NodePods, objects: () => ObjectReader): Authorizer {
  return {
    async authorize(attributes) {
      const node = nodeOfUser(attributes.user)
      if (node === undefined) return { allowed: false }
      if (node === '') return no(`unknown node for user "${attributes.user.name}"`)
      if (attributes.kind === 'path') return { allowed: false }
      return decide(node, attributes, pods(), objects)
    },
  }
}

function decide(
  node: string,
  attributes: ResourceAttributes,
  pods: NodePods,
  objects: () => ObjectReader,
): AuthorizationDecision {
  const { group, resource, name = '', namespace = '' } = attributes
  const related = (to: Parameters<NodePods['refers']>[2]): AuthorizationDecision =>
    pods.refers(node, namespace, to) ? allowed : unrelated(node)
  switch (group === '' ? resource : `${resource}.${group}`) {
    case 'secrets':
      return readOfOne(attributes, reads) ?? related(({ secrets }) => secrets.has(name))
    case 'configmaps':
      return readOfOne(attributes, reads) ?? related(({ configMaps }) => configMaps.has(name))
    case 'persistentvolumeclaims':
      return readOfOne(attributes, ['get']) ?? related(({ claims }) => claims.has(name))
    case 'persistentvolumes':
      return readOfOne(attributes, ['get']) ?? readOfVolume(node, name, pods, objects())
    case 'serviceaccounts':
      return creationOfToken(attributes) ?? related(({ serviceAccount }) => serviceAccount === name)
    case 'pods':
      return reads.includes(attributes.verb) ? readOfPods(node, attributes, pods) : byRules(attributes)
    case 'nodes':
      return readOfNodes(node, attributes) ?? byRules(attributes)
    case 'leases.coordination.k8s.io':
      return useOfLease(node, attributes) ?? byRules(attributes)
    default:
      return byRules(attributes)
  }
}

function byRules(attributes: ResourceAttributes): AuthorizationDecision {
  return nodeRules.some((rule) => ruleAllows(rule, attributes)) ? allowed : { allowed: false }
}

function unrelated(node: string): AuthorizationDecision {
  return no(`no relationship found between node '${node}' and this object`)
}

/** A refusal, unless it is a read of one named object. A list or watch is one when its field selector names the object. */
function readOfOne(
  { verb, subresource, name = '', resource }: ResourceAttributes,
  verbs: readonly string[],
): AuthorizationDecision | undefined {
  if (!verbs.includes(verb)) return no(`can only ${verbs.join(', ')} individual resources of this type: ${resource}`)
  if (subresource !== undefined) return no('cannot read subresource')
  return name === '' ? no('No Object name found') : undefined
}

function readOfVolume(node: string, volume: string, pods: NodePods, objects: ObjectReader): AuthorizationDecision {
  for (const claim of pods.claims(node)) {
    const { spec } = objects.get('', 'persistentvolumeclaims', claim) ?? {}
    if ((spec as { volumeName?: string } | undefined)?.volumeName === volume) return allowed
  }
  return unrelated(node)
}

function creationOfToken({ verb, subresource, name = '' }: ResourceAttributes): AuthorizationDecision | undefined {
  if (verb !== 'create' || subresource !== 'token') return no('can only create tokens for individual service accounts')
  return name === '' ? no('No Object name found') : undefined
}

function readOfPods(node: string, attributes: ResourceAttributes, pods: NodePods): AuthorizationDecision {
  const { verb, subresource, namespace = '', name = '', fieldSelector = {} } = attributes
  if (subresource !== undefined) return no('cannot read subresource')
  if (verb !== 'get' && fieldSelector['spec.nodeName'] === node) return allowed
  if (name !== '') return pods.isBound(node, namespace, name) ? allowed : unrelated(node)
  return no("can only list/watch pods with spec.nodeName field selector that is the node's own name")
}

function readOfNodes(node: string, { verb, name = '' }: ResourceAttributes): AuthorizationDecision | undefined {
  if (!reads.includes(verb) || name === node) return undefined
  return no(`node '${node}' cannot read ${name === '' ? 'all nodes' : `'${name}'`}, only its own Node object`)
}

function useOfLease(node: string, attributes: ResourceAttributes): AuthorizationDecision | undefined {
  const { verb, namespace = '', name = '' } = attributes
  if (namespace !== leaseNamespace) return no(`can only access leases in the "${leaseNamespace}" system namespace`)
  // The name of an object that is created is in its body: admission looks at it.
  if (verb !== 'create' && name !== node)
    return no('can only access node lease with the same name as the requesting node')
  return undefined
}
