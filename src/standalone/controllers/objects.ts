// The kinds that controllers work with, and small questions about them.
import { randomBytes } from 'node:crypto'
import type * as apps from 'kubernetes-types/apps/v1.js'
import type * as batch from 'kubernetes-types/batch/v1.js'
import type * as certificates from 'kubernetes-types/certificates/v1.js'
import type * as core from 'kubernetes-types/core/v1.js'
import type * as discovery from 'kubernetes-types/discovery/v1.js'
import type * as policy from 'kubernetes-types/policy/v1.js'
import type { KubeObject, ObjectKey, OwnerReference } from '../../api/index.ts'

export type Pod = KubeObject<core.PodSpec, core.PodStatus>
export type Node = KubeObject<core.NodeSpec, core.NodeStatus>
export type Service = KubeObject<core.ServiceSpec, core.ServiceStatus>
export type Namespace = KubeObject<core.NamespaceSpec, core.NamespaceStatus>
export type Deployment = KubeObject<apps.DeploymentSpec, apps.DeploymentStatus>
export type ReplicaSet = KubeObject<apps.ReplicaSetSpec, apps.ReplicaSetStatus>
export type StatefulSet = KubeObject<apps.StatefulSetSpec, apps.StatefulSetStatus>
export type DaemonSet = KubeObject<apps.DaemonSetSpec, apps.DaemonSetStatus>
export type Job = KubeObject<batch.JobSpec, batch.JobStatus>
export type DisruptionBudget = KubeObject<policy.PodDisruptionBudgetSpec, policy.PodDisruptionBudgetStatus>
export type EndpointSlice = KubeObject & Omit<discovery.EndpointSlice, 'metadata' | 'apiVersion' | 'kind'>
export type SigningRequest = KubeObject<
  certificates.CertificateSigningRequestSpec,
  certificates.CertificateSigningRequestStatus
>
export type PodTemplate = core.PodTemplateSpec
export type Condition = {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
  lastUpdateTime?: string
}

export function keyText({ metadata }: KubeObject): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
}

export function keyOf(text: string): ObjectKey {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true)
}

export function controllerReference(owner: KubeObject): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

export function isTerminating(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined
}

/** Neither ended nor ending. */
export function isActive(pod: Pod): boolean {
  return !isTerminating(pod) && pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed'
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

/** Ready for at least this time. */
export function isAvailable(pod: Pod, minReadySeconds = 0, now = Date.now()): boolean {
  if (!isReady(pod)) return false
  if (minReadySeconds === 0) return true
  const since = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime
  return since !== undefined && Date.parse(since) + minReadySeconds * 1000 <= now
}

const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

export function randomSuffix(length = 5): string {
  return [...randomBytes(length)].map((byte) => nameAlphabet[byte % nameAlphabet.length]).join('')
}

/** A pod of a template, owned by the controller's object. */
export function podOf(
  owner: KubeObject,
  template: PodTemplate,
  changes: { name?: string; labels?: Record<string, string> } = {},
): Pod {
  const prefix = `${owner.metadata.name}-`
  const { labels, annotations, finalizers } = template.metadata ?? {}
  const name = changes.name ?? `${prefix.slice(0, 58)}${randomSuffix()}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(owner.metadata.namespace === undefined ? {} : { namespace: owner.metadata.namespace }),
      ...(changes.name === undefined ? { generateName: prefix } : {}),
      labels: { ...labels, ...changes.labels },
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ownerReferences: [controllerReference(owner)],
    },
    ...(template.spec === undefined ? {} : { spec: structuredClone(template.spec) }),
  }
}

/** RFC 3339 without fractions, as the API writes times. */
export function timestamp(now = Date.now()): string {
  return new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** Deep equality of JSON values; an absent field equals undefined. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const names = new Set([...Object.keys(left), ...Object.keys(right)])
  return [...names].every((name) => isSame(left[name], right[name]))
}

/** The conditions with this one set; its transition time changes with its status only. */
export function withCondition(conditions: readonly Condition[] | undefined, wanted: Condition): Condition[] {
  const others = (conditions ?? []).filter(({ type }) => type !== wanted.type)
  const existing = conditions?.find(({ type }) => type === wanted.type)
  const lastTransitionTime = existing?.status === wanted.status ? existing.lastTransitionTime : timestamp()
  return [...others, { ...wanted, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) }]
}

/** An absolute number or a percentage of `total`. */
export function scaled(value: number | string | undefined, total: number, roundUp: boolean): number {
  if (value === undefined) return 0
  if (typeof value === 'number') return value
  const share = (Number.parseFloat(value) / 100) * total
  return roundUp ? Math.ceil(share) : Math.floor(share)
}
