// Validation of CustomResourceDefinitions: names, versions, and that schemas are structural.
import { duplicate, forbiddenField, invalidValue, required } from './causes.ts'
import type { CrdSpec, CustomResourceDefinition } from './custom-kinds.ts'
import type { Cause, Schema } from './kind.ts'
import { dns1035LabelFault, dnsSubdomainFault } from './names.ts'

/** What is wrong with a definition whose shape the schema of its own kind has approved. */
export function validateCrd(crd: CustomResourceDefinition, old?: CustomResourceDefinition): Cause[] {
  const { spec, metadata } = crd
  if (spec === undefined) return [required('spec')]
  const causes = [...validateNames(spec, metadata.name), ...validateVersions(spec)]
  if (old?.spec !== undefined) {
    const changes = [
      ['spec.group', spec.group, old.spec.group],
      ['spec.scope', spec.scope, old.spec.scope],
      ['spec.names.plural', spec.names.plural, old.spec.names.plural],
      ['spec.names.kind', spec.names.kind, old.spec.names.kind],
    ] as const
    for (const [field, now, before] of changes) {
      if (now !== before) causes.push(invalidValue(field, now, 'field is immutable'))
    }
    const names = new Set(spec.versions.map((version) => version.name))
    for (const stored of old.status?.storedVersions ?? []) {
      if (names.has(stored)) continue
      causes.push(
        invalidValue(
          'status.storedVersions',
          stored,
          `missing from spec.versions; ${stored} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${stored} and removes ${stored} from status.storedVersions`,
        ),
      )
    }
  }
  return causes
}

function validateNames(spec: CrdSpec, name: string): Cause[] {
  const { group, names, scope } = spec
  const causes: Cause[] = []
  if (name !== `${names.plural}.${group}`) {
    causes.push(invalidValue('metadata.name', name, `must be spec.names.plural+"."+spec.group`))
  }
  const groupFault =
    dnsSubdomainFault(group) ?? (group.includes('.') ? undefined : 'should be a domain with at least one dot')
  if (groupFault !== undefined) causes.push(invalidValue('spec.group', group, groupFault))
  if (scope !== 'Namespaced' && scope !== 'Cluster') {
    causes.push(invalidValue('spec.scope', scope, 'supported values: "Cluster", "Namespaced"'))
  }
  const parts: [string, string][] = [
    ['plural', names.plural],
    ['singular', names.singular ?? names.kind.toLowerCase()],
    ['kind', names.kind.toLowerCase()],
    ['listKind', (names.listKind ?? `${names.kind}List`).toLowerCase()],
  ]
  for (const [part, value] of parts) {
    const fault = dns1035LabelFault(value)
    if (fault !== undefined) causes.push(invalidValue(`spec.names.${part}`, value, fault))
  }
  names.shortNames?.forEach((short, index) => {
    const fault = dns1035LabelFault(short)
    if (fault !== undefined) causes.push(invalidValue(`spec.names.shortNames[${index}]`, short, fault))
  })
  return causes
}

function validateVersions(spec: CrdSpec): Cause[] {
  const causes: Cause[] = []
  const seen = new Set<string>()
  spec.versions.forEach((version, index) => {
    const at = `spec.versions[${index}]`
    const fault = dns1035LabelFault(version.name)
    if (fault !== undefined) causes.push(invalidValue(`${at}.name`, version.name, fault))
    if (seen.has(version.name)) causes.push(duplicate(`${at}.name`, version.name))
    seen.add(version.name)
    const schema = version.schema?.openAPIV3Schema
    if (schema === undefined) causes.push(required(`${at}.schema.openAPIV3Schema`, 'schemas are required'))
    else {
      const path = `${at}.schema.openAPIV3Schema`
      if (schema.type !== 'object')
        causes.push(invalidValue(`${path}.type`, schema.type ?? '', 'must be object at the root'))
      causes.push(...structuralFaults(schema, path))
    }
  })
  if (spec.conversion?.strategy === 'Webhook' && spec.versions.filter(({ served }) => served).length > 1) {
    const why =
      'conversion between served versions by a webhook is not supported; serve one version or use strategy None'
    causes.push(forbiddenField('spec.conversion.strategy', why))
  }
  if (spec.versions.length === 0) causes.push(required('spec.versions'))
  if (spec.versions.filter((version) => version.storage).length !== 1) {
    causes.push(
      invalidValue(
        'spec.versions',
        spec.versions.map(({ name }) => name),
        'must have exactly one version marked as storage version',
      ),
    )
  }
  return causes
}

/** Structural: every field has a type, and nothing is typed or named only inside a combination. */
function structuralFaults(schema: Schema, path: string): Cause[] {
  const causes: Cause[] = []
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  if (schema.type === undefined && schema['x-kubernetes-int-or-string'] !== true && !isOpen) {
    causes.push(required(`${path}.type`, 'must not be empty for specified object fields'))
  }
  if (schema.type === 'array' && schema.items === undefined) causes.push(required(`${path}.items`, 'must be specified'))
  if (schema.properties !== undefined && schema.additionalProperties !== undefined) {
    causes.push(
      forbiddenField(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    )
  }
  if (schema.pattern !== undefined && !isPattern(schema.pattern)) {
    causes.push(invalidValue(`${path}.pattern`, schema.pattern, 'must be a valid regular expression'))
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    causes.push(...structuralFaults(field, `${path}.properties[${name}]`))
  }
  if (schema.items !== undefined) causes.push(...structuralFaults(schema.items, `${path}.items`))
  if (typeof schema.additionalProperties === 'object') {
    causes.push(...structuralFaults(schema.additionalProperties, `${path}.additionalProperties`))
  }
  const keys = schema['x-kubernetes-list-map-keys']
  if (schema['x-kubernetes-list-type'] === 'map' && (keys === undefined || keys.length === 0)) {
    causes.push(required(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'))
  }
  return causes
}

/** RE2 has a few forms of its own, such as inline flags; they are not refused. */
function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return /\(\?[imsU]|\\[zAQCpP]|\[\[:/.test(pattern) || isLoosePattern(pattern)
  }
}

function isLoosePattern(pattern: string): boolean {
  try {
    new RegExp(pattern)
    return true
  } catch {
    return false
  }
}
