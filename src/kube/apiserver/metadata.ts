// Metadata that every object has: what the server sets, and what a client may not write.
import { randomBytes } from 'node:crypto'
import type { Cause, KubeObject, ObjectMeta } from '../../api/index.ts'

const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const longestGeneratedPrefix = 63 - suffixLength

/** A name from `generateName`: its prefix and five letters that make no words. */
export function generateName(prefix: string): string {
  const letters = [...randomBytes(suffixLength)].map((byte) => suffixAlphabet[byte % suffixAlphabet.length])
  return prefix.slice(0, longestGeneratedPrefix) + letters.join('')
}

/** RFC 3339 in whole seconds, as Kubernetes writes times. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const label1123 = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const label1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const qualifiedName =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
const maxAnnotationBytes = 256 * 1024

const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const label1123Text =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
const qualifiedText =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const valueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

function invalidValue(field: string, value: unknown, why: string): Cause {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(value)}: ${why}` }
}

/** Why a name is not allowed for a kind of object; undefined when it is. */
function nameComplaint(kind: { group: string; kind: string }, name: string): string | undefined {
  // The part after its signer is checked with the signer.
  const isFree = kind.group === 'rbac.authorization.k8s.io' || kind.kind === 'ClusterTrustBundle'
  if (isFree) {
    return name === '.' || name === '..' || /[/%]/.test(name)
      ? "may not be '.' or '..' nor contain '/' or '%'"
      : undefined
  }
  if (kind.group === '' && kind.kind === 'Service') {
    return label1035.test(name) && name.length <= 63 ? undefined : label1035Text
  }
  if (kind.group === '' && kind.kind === 'Namespace') {
    return label1123.test(name) && name.length <= 63 ? undefined : label1123Text
  }
  if (name.length > 253) return 'must be no more than 253 characters'
  return subdomain.test(name) ? undefined : subdomainText
}

/** Faults in the metadata of an object about to be written. */
export function validateMetadata(
  kind: { group: string; kind: string; namespaced: boolean },
  object: KubeObject,
  old?: KubeObject,
): Cause[] {
  const { metadata } = object
  const causes: Cause[] = []
  if (old === undefined) {
    if (metadata.name === '') {
      causes.push({
        reason: 'FieldValueRequired',
        field: 'metadata.name',
        message: 'Required value: name or generateName is required',
      })
    } else {
      const why = nameComplaint(kind, metadata.name)
      if (why !== undefined) causes.push(invalidValue('metadata.name', metadata.name, why))
    }
  }
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (!qualifiedName.test(key)) causes.push(invalidValue('metadata.labels', key, qualifiedText))
    if (typeof value !== 'string' || !labelValue.test(value)) {
      causes.push(invalidValue('metadata.labels', value, valueText))
    }
  }
  let bytes = 0
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    if (!qualifiedName.test(key.toLowerCase())) {
      causes.push(invalidValue('metadata.annotations', key, qualifiedText))
    }
    bytes += key.length + String(value).length
  }
  if (bytes > maxAnnotationBytes) {
    causes.push({
      reason: 'FieldValueTooLong',
      field: 'metadata.annotations',
      message: `Too long: may not be more than ${maxAnnotationBytes} bytes`,
    })
  }
  causes.push(...validateOwners(metadata), ...validateFinalizers(metadata, old?.metadata))
  return causes
}

function validateOwners(metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  const owners = metadata.ownerReferences ?? []
  owners.forEach((owner, index) => {
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (typeof owner[field] !== 'string' || owner[field] === '') {
        causes.push(
          invalidValue(`metadata.ownerReferences[${index}].${field}`, owner[field] ?? '', `${field} must not be empty`),
        )
      }
    }
  })
  const controllers = owners.filter((owner) => owner.controller === true)
  if (controllers.length > 1) {
    causes.push(
      invalidValue(
        'metadata.ownerReferences',
        controllers.map((owner) => owner.name),
        'Only one reference can have Controller set to true',
      ),
    )
  }
  return causes
}

function validateFinalizers(metadata: ObjectMeta, old: ObjectMeta | undefined): Cause[] {
  const causes: Cause[] = []
  const finalizers = metadata.finalizers ?? []
  for (const finalizer of finalizers) {
    if (!qualifiedName.test(finalizer)) causes.push(invalidValue('metadata.finalizers', finalizer, qualifiedText))
  }
  if (old?.deletionTimestamp !== undefined) {
    const added = finalizers.filter((finalizer) => !(old.finalizers ?? []).includes(finalizer))
    if (added.length > 0) {
      causes.push({
        reason: 'FieldValueForbidden',
        field: 'metadata.finalizers',
        message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`,
      })
    }
  }
  return causes
}
