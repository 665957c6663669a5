// What the server decides for built-in kinds when they are written: initial status, and what each way of writing may change.
import type { KindDefinition, KubeObject } from '../../api/index.ts'
import { clone, isObject, type JsonObject, jsonEqual } from './json.ts'

const statusKeptOnCreate = new Set(['/Node', '/PersistentVolume'])

/** Resets what a client may not choose on a new object. */
export function prepareForCreate(kind: KindDefinition, object: KubeObject): void {
  if (kind.subresources.status === true && !statusKeptOnCreate.has(`${kind.group}/${kind.kind}`)) delete object.status
  if (kind.group !== '') return
  switch (kind.kind) {
    case 'Pod':
      object.status = { phase: 'Pending', qosClass: qosClassOf(object.spec) }
      return
    case 'Namespace':
      object.spec = { ...(isObject(object.spec) ? object.spec : {}), finalizers: ['kubernetes'] }
      object.status = { phase: 'Active' }
      object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name }
      return
    case 'Service':
      object.status = { loadBalancer: {} }
      return
    case 'Secret':
      foldStringData(object)
      return
  }
}

/** Puts back what this way of writing may not change. */
export function prepareForUpdate(
  kind: KindDefinition,
  next: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
): void {
  if (subresource === undefined && kind.subresources.status === true) restore(next, current, 'status')
  if (kind.group !== '') return
  if (kind.kind === 'Secret') foldStringData(next)
  if (kind.kind === 'Service') keepAssignedAddresses(next, current)
  if (kind.kind === 'Namespace') {
    next.metadata.labels = { ...next.metadata.labels, 'kubernetes.io/metadata.name': next.metadata.name }
    if (subresource !== 'finalize') {
      const finalizers = (current.spec as { finalizers?: string[] } | undefined)?.finalizers
      next.spec = { ...(isObject(next.spec) ? next.spec : {}), ...(finalizers === undefined ? {} : { finalizers }) }
    }
  }
}

/** What a write through a subresource makes of the current object: only the subresource's part is taken from the wanted one. */
export function mergeSubresource(
  kind: KindDefinition,
  subresource: string | undefined,
  current: KubeObject,
  wanted: KubeObject,
): KubeObject {
  if (subresource === undefined) return wanted
  const merged = clone(current)
  merged.metadata.managedFields = wanted.metadata.managedFields ?? merged.metadata.managedFields
  if (merged.metadata.managedFields === undefined) delete merged.metadata.managedFields
  switch (subresource) {
    case 'finalize': {
      const finalizers = (wanted.spec as JsonObject | undefined)?.finalizers
      merged.spec = { ...(isObject(merged.spec) ? merged.spec : {}), finalizers: finalizers ?? [] }
      return merged
    }
    case 'approval': {
      const conditions = (wanted.status as JsonObject | undefined)?.conditions
      merged.status = { ...(isObject(merged.status) ? merged.status : {}), conditions }
      return merged
    }
    case 'ephemeralcontainers': {
      const ephemeralContainers = (wanted.spec as JsonObject | undefined)?.ephemeralContainers
      merged.spec = { ...(isObject(merged.spec) ? merged.spec : {}), ephemeralContainers }
      return merged
    }
    case 'resize':
      return { ...merged, spec: wanted.spec }
    default: {
      if (kind.group === '' && (kind.kind === 'Node' || kind.kind === 'Pod')) {
        // Kubelets keep labels and annotations of their node and pods with the status.
        copyOrDelete(merged.metadata, wanted.metadata, 'labels')
        copyOrDelete(merged.metadata, wanted.metadata, 'annotations')
      }
      if (wanted.status === undefined) delete merged.status
      else merged.status = wanted.status
      return merged
    }
  }
}

function copyOrDelete<K extends 'labels' | 'annotations'>(
  to: KubeObject['metadata'],
  from: KubeObject['metadata'],
  key: K,
) {
  if (from[key] === undefined) delete to[key]
  else to[key] = from[key]
}

function restore(next: KubeObject, current: KubeObject, key: 'status'): void {
  if (current[key] === undefined) delete next[key]
  else next[key] = clone(current[key])
}

interface AssignedAddresses {
  readonly type?: string
  readonly clusterIP?: string
  readonly clusterIPs?: readonly string[]
  readonly ports?: readonly { readonly port: number; readonly protocol?: string; readonly nodePort?: number }[]
}

/** A client that replaces a Service need not know what the server has assigned to it. */
function keepAssignedAddresses(next: KubeObject, current: KubeObject): void {
  const [wanted, had] = [(next.spec ?? {}) as AssignedAddresses, (current.spec ?? {}) as AssignedAddresses]
  if (wanted.type === 'ExternalName' || had.type === 'ExternalName') return
  const kept: JsonObject = {}
  if (!wanted.clusterIP && had.clusterIP) kept.clusterIP = had.clusterIP
  if (had.clusterIPs !== undefined && (wanted.clusterIPs?.length ?? 0) === 0) {
    if (!wanted.clusterIP || wanted.clusterIP === had.clusterIP) kept.clusterIPs = clone(had.clusterIPs)
  }
  next.spec = { ...wanted, ...kept }
}

function foldStringData(secret: KubeObject & { stringData?: unknown; data?: unknown }): void {
  if (!isObject(secret.stringData)) return
  const encoded = Object.entries(secret.stringData).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString('base64'),
  ])
  secret.data = { ...(isObject(secret.data) ? secret.data : {}), ...Object.fromEntries(encoded) }
  delete secret.stringData
}

interface ContainerResources {
  readonly resources?: { readonly requests?: Record<string, string>; readonly limits?: Record<string, string> }
}

function qosClassOf(spec: unknown): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const { containers = [], initContainers = [] } = (isObject(spec) ? spec : {}) as {
    containers?: ContainerResources[]
    initContainers?: ContainerResources[]
  }
  const all = [...containers, ...initContainers].map((container) => container.resources ?? {})
  const isEmpty = (amounts: Record<string, string> | undefined) => Object.keys(amounts ?? {}).length === 0
  if (all.every(({ requests, limits }) => isEmpty(requests) && isEmpty(limits))) return 'BestEffort'
  const guaranteed = all.every(
    ({ requests, limits }) =>
      limits?.cpu !== undefined &&
      limits.memory !== undefined &&
      (requests === undefined || jsonEqual({ ...limits, ...requests }, limits)),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
