// Which webhooks of a configuration want to see a request.
import { type KubeObject, type LabelSelector, matchesLabelSelector } from '../../../api/index.ts'
import type { AdmissionRequest, ObjectReader } from '../types.ts'

export interface Webhook {
  readonly name: string
  readonly clientConfig: {
    readonly url?: string
    readonly service?: {
      readonly namespace: string
      readonly name: string
      readonly path?: string
      readonly port?: number
    }
    readonly caBundle?: string
  }
  readonly rules?: readonly WebhookRule[]
  readonly failurePolicy?: 'Fail' | 'Ignore'
  readonly matchPolicy?: 'Exact' | 'Equivalent'
  readonly namespaceSelector?: LabelSelector
  readonly objectSelector?: LabelSelector
  readonly sideEffects?: string
  readonly timeoutSeconds?: number
  readonly admissionReviewVersions?: readonly string[]
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded'
  readonly matchConditions?: readonly unknown[]
}

interface WebhookRule {
  readonly operations?: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly apiVersions?: readonly string[]
  readonly resources?: readonly string[]
  readonly scope?: string
}

/** Objects that configure admission are never sent to webhooks: a broken webhook could not be repaired. */
export function isExempt({ kind }: AdmissionRequest): boolean {
  return kind.group === 'admissionregistration.k8s.io' || kind.verbs !== undefined
}

export function wantsRequest(webhook: Webhook, request: AdmissionRequest, objects: ObjectReader): boolean {
  return (
    (webhook.rules ?? []).some((rule) => ruleMatches(rule, webhook.matchPolicy ?? 'Equivalent', request)) &&
    matchesNamespace(webhook.namespaceSelector, request, objects) &&
    matchesObject(webhook.objectSelector, request)
  )
}

function ruleMatches(rule: WebhookRule, policy: 'Exact' | 'Equivalent', request: AdmissionRequest): boolean {
  const { kind, subresource, operation } = request
  const resource = subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`
  const isInScope =
    rule.scope === undefined ||
    rule.scope === '*' ||
    (rule.scope === 'Namespaced') === (request.namespace !== undefined)
  return (
    includes(rule.operations, operation) &&
    includes(rule.apiGroups, kind.group) &&
    (policy === 'Equivalent' ? (rule.apiVersions ?? []).length > 0 : includes(rule.apiVersions, kind.version)) &&
    (rule.resources ?? []).some((pattern) => resourceMatches(pattern, resource)) &&
    isInScope
  )
}

function includes(values: readonly string[] | undefined, value: string): boolean {
  return values?.some((wanted) => wanted === '*' || wanted === value) === true
}

/** `pods`, `pods/status`, `*` (all but subresources), `*\/*`, `pods/*`, `*\/scale`. */
function resourceMatches(pattern: string, resource: string): boolean {
  if (pattern === '*/*' || pattern === resource) return true
  const [wantedBase, wantedSub] = pattern.split('/', 2)
  const [base, sub] = resource.split('/', 2)
  if (wantedBase !== '*' && wantedBase !== base) return false
  if (wantedSub === undefined) return sub === undefined
  return wantedSub === '*' || wantedSub === sub
}

function matchesNamespace(
  selector: LabelSelector | undefined,
  request: AdmissionRequest,
  objects: ObjectReader,
): boolean {
  if (selector === undefined || Object.keys(selector).length === 0) return true
  const { kind, namespace } = request
  const isNamespace = kind.group === '' && kind.plural === 'namespaces'
  if (!isNamespace && namespace === undefined) return true
  const subject = isNamespace
    ? (request.object ?? request.oldObject)
    : objects.get('', 'namespaces', { name: namespace ?? '' })
  return matchesLabelSelector(selector, subject?.metadata.labels ?? {})
}

/** Either the old or the new object matches. */
function matchesObject(selector: LabelSelector | undefined, { object, oldObject }: AdmissionRequest): boolean {
  if (selector === undefined || Object.keys(selector).length === 0) return true
  const matches = (subject: KubeObject | undefined): boolean =>
    subject !== undefined && matchesLabelSelector(selector, subject.metadata.labels ?? {})
  return matches(object) || matches(oldObject)
}
