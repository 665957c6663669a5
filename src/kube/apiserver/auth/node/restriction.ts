// What nodes may write: their own Node and Lease, the status of their pods, tokens and certificates of their own.
// The rules are those of Kubernetes' NodeRestriction: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
import { forbidden } from '../../errors.ts'
import { jsonEqual } from '../../json.ts'
import type { AdmissionPlugin, AdmissionRequest, KubeObject, ObjectReader } from '../../types.ts'
import { type SigningRequestSpec, subjectOf } from '../signers.ts'
import { nodeOfUser } from './identity.ts'
import { labelsForbidden } from './labels.ts'
import { isMirror, mirrorAnnotation, podReferences } from './pod-references.ts'

interface NodeSpec {
  readonly taints?: unknown
  readonly configSource?: unknown
}

interface PodSpec {
  readonly nodeName?: string
}

const leaseNamespace = 'kube-node-lease'
const nodeSigners = ['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client-kubelet']

export function createNodeRestriction(objects: () => ObjectReader): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    validate(request) {
      const node = nodeOfUser(request.user)
      if (node === undefined) return
      const why =
        node === '' ? `could not determine node from user "${request.user.name}"` : refusal(node, request, objects)
      if (why !== undefined) throw forbidden(request.kind, request.name, why)
    },
  }
}

/** Why the node may not do it; undefined when it may. */
function refusal(node: string, request: AdmissionRequest, objects: () => ObjectReader): string | undefined {
  const { group, plural } = request.kind
  switch (group === '' ? plural : `${plural}.${group}`) {
    case 'nodes':
      return refusalOfNode(node, request)
    case 'pods':
      return refusalOfPod(node, request, objects)
    case 'leases.coordination.k8s.io':
      return refusalOfLease(node, request)
    case 'certificatesigningrequests.certificates.k8s.io':
      return refusalOfSigningRequest(node, request)
    default:
      return undefined
  }
}

function refusalOfNode(node: string, { operation, name, object, oldObject, subresource }: AdmissionRequest) {
  if (operation === 'DELETE') return `node "${node}" is not allowed to delete nodes`
  if (name !== node) return `node "${node}" is not allowed to modify node "${name}"`
  const [spec, before] = [(object?.spec ?? {}) as NodeSpec, (oldObject?.spec ?? {}) as NodeSpec]
  if (spec.configSource !== undefined && !jsonEqual(spec.configSource, before.configSource)) {
    return `node "${node}" is not allowed to update configSource to a new non-nil configSource`
  }
  const labels = labelsForbidden(object?.metadata.labels, oldObject?.metadata.labels)
  if (labels.length > 0) return `is not allowed to modify labels: ${labels.join(', ')}`
  if (operation !== 'UPDATE' || subresource !== undefined) return undefined
  if (!jsonEqual(spec.taints ?? [], before.taints ?? [])) return `node "${node}" is not allowed to modify taints`
  if (!jsonEqual(object?.metadata.ownerReferences ?? [], oldObject?.metadata.ownerReferences ?? [])) {
    return `node "${node}" is not allowed to modify ownerReferences`
  }
  return undefined
}

function refusalOfPod(
  node: string,
  { operation, object, oldObject, subresource }: AdmissionRequest,
  objects: () => ObjectReader,
): string | undefined {
  if (operation === 'CREATE' && subresource === undefined && object !== undefined) {
    return refusalOfNewPod(node, object, objects)
  }
  if (nodeOfPod(oldObject) !== node) {
    const what = operation === 'DELETE' ? 'delete pods' : 'update status for pods'
    return `node "${node}" can only ${what} with spec.nodeName set to itself`
  }
  if (operation === 'DELETE') return undefined
  if (subresource !== 'status') return `unexpected operation ${operation} on a pod by node "${node}"`
  if (!jsonEqual(object?.metadata.labels ?? {}, oldObject?.metadata.labels ?? {})) {
    return `node "${node}" cannot update labels through pod status`
  }
  if (object?.metadata.annotations?.[mirrorAnnotation] !== oldObject?.metadata.annotations?.[mirrorAnnotation]) {
    return `node "${node}" cannot make a pod a mirror pod, or a mirror pod another`
  }
  return undefined
}

/** A node shows what it runs of its own; what would give it anybody's rights or data is not among it. */
function refusalOfNewPod(node: string, pod: KubeObject, objects: () => ObjectReader): string | undefined {
  if (!isMirror(pod))
    return `pod does not have "kubernetes.io/config.mirror" annotation, node "${node}" can only create mirror pods`
  if (nodeOfPod(pod) !== node) return `node "${node}" can only create pods with spec.nodeName set to itself`
  const { serviceAccount, secrets, configMaps, claims, tokenAudiences } = podReferences(pod)
  for (const [what, isThere] of [
    ['service account', serviceAccount !== undefined || tokenAudiences.size > 0],
    ['secret', secrets.size > 0],
    ['configmap', configMaps.size > 0],
    ['persistentvolumeclaim', claims.size > 0],
  ] as const) {
    if (isThere) return `node "${node}" can not create pods that reference a ${what}`
  }
  const owners = pod.metadata.ownerReferences ?? []
  const uid = objects().get('', 'nodes', { name: node })?.metadata.uid
  const isOwn = owners.every(
    (owner) => owner.apiVersion === 'v1' && owner.kind === 'Node' && owner.name === node && owner.uid === uid,
  )
  return owners.length <= 1 && isOwn
    ? undefined
    : `node "${node}" can only create pods with an owner reference set to itself`
}

function refusalOfLease(node: string, { namespace, name, operation, object }: AdmissionRequest): string | undefined {
  if (namespace !== leaseNamespace) return `can only access leases in the "${leaseNamespace}" system namespace`
  const named = operation === 'CREATE' ? object?.metadata.name : name
  return named === node ? undefined : 'can only access node lease with the same name as the requesting node'
}

function refusalOfSigningRequest(node: string, { operation, object }: AdmissionRequest): string | undefined {
  const spec = object?.spec as SigningRequestSpec | undefined
  if (operation !== 'CREATE' || spec === undefined || !nodeSigners.includes(spec.signerName)) return undefined
  const name = subjectOf(spec)?.commonName
  if (name === `system:node:${node}`) return undefined
  return `can only create a node CSR with CN=system:node:${node}, not "${name ?? ''}"`
}

function nodeOfPod(pod: KubeObject | undefined): string | undefined {
  return (pod?.spec as PodSpec | undefined)?.nodeName
}
