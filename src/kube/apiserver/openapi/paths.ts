// The operations of kinds in OpenAPI: kubectl reads from them which query parameters and patch types the server takes.
import type { KindDefinition } from '../types.ts'
import { type Dialect, definitionName, type Json } from './definitions.ts'

interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  readonly action: string
  readonly parameters: readonly (readonly [string, 'string' | 'boolean' | 'integer'])[]
  readonly takesBody: boolean
}

const dryRun = ['dryRun', 'string'] as const
const fieldManager = ['fieldManager', 'string'] as const
const fieldValidation = ['fieldValidation', 'string'] as const
const listing = [
  ['allowWatchBookmarks', 'boolean'],
  ['continue', 'string'],
  ['fieldSelector', 'string'],
  ['labelSelector', 'string'],
  ['limit', 'integer'],
  ['resourceVersion', 'string'],
  ['resourceVersionMatch', 'string'],
  ['timeoutSeconds', 'integer'],
  ['watch', 'boolean'],
] as const
const deleting = [dryRun, ['gracePeriodSeconds', 'integer'], ['propagationPolicy', 'string']] as const
const writing = [dryRun, fieldManager, fieldValidation]

const onCollection: readonly Operation[] = [
  { method: 'get', action: 'list', parameters: listing, takesBody: false },
  { method: 'post', action: 'post', parameters: writing, takesBody: true },
  { method: 'delete', action: 'deletecollection', parameters: [...deleting, ...listing], takesBody: true },
]
const onObject: readonly Operation[] = [
  { method: 'get', action: 'get', parameters: [], takesBody: false },
  { method: 'put', action: 'put', parameters: writing, takesBody: true },
  { method: 'patch', action: 'patch', parameters: [...writing, ['force', 'boolean']], takesBody: true },
  { method: 'delete', action: 'delete', parameters: deleting, takesBody: true },
]
const onSubresource = onObject.filter(({ method }) => method !== 'delete')

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
  'application/strategic-merge-patch+json',
]

/** `/api/v1` or `/apis/<group>/<version>`. */
export function pathOf({ group, version }: { group: string; version: string }): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

/** The paths of a kind with their operations. */
export function pathsOf(kind: KindDefinition, dialect: Dialect): Record<string, Json> {
  const collection = `${pathOf(kind)}${kind.namespaced ? '/namespaces/{namespace}' : ''}/${kind.plural}`
  if (kind.verbs !== undefined) {
    const creating = onCollection.filter(({ method }) => method === 'post')
    return { [collection]: item(kind, creating, collection, dialect) }
  }
  const paths = {
    [collection]: item(kind, onCollection, collection, dialect),
    [`${collection}/{name}`]: item(kind, onObject, `${collection}/{name}`, dialect),
  }
  if (kind.subresources.status === true) {
    const path = `${collection}/{name}/status`
    paths[path] = item(kind, onSubresource, path, dialect)
  }
  return paths
}

function item(kind: KindDefinition, operations: readonly Operation[], path: string, dialect: Dialect): Json {
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    ...typed('string', dialect),
  }))
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.method, describe(kind, operation, dialect)])),
    parameters: named,
  }
}

function typed(type: string, dialect: Dialect): Json {
  return dialect === 'v2' ? { type, uniqueItems: true } : { schema: { type, uniqueItems: true } }
}

function describe(kind: KindDefinition, operation: Operation, dialect: Dialect): Json {
  const name = definitionName(kind)
  const $ref = dialect === 'v2' ? `#/definitions/${name}` : `#/components/schemas/${name}`
  const parameters: Json[] = operation.parameters.map(([parameter, type]) => ({
    name: parameter,
    in: 'query',
    ...typed(type, dialect),
  }))
  const schema = operation.method === 'patch' || operation.method === 'delete' ? { type: 'object' } : { $ref }
  const isPatch = operation.method === 'patch'
  const bodyTypes = isPatch
    ? patchTypes.filter((type) => kind.custom !== true || !type.includes('strategic'))
    : ['application/json']
  if (operation.takesBody && dialect === 'v2') parameters.push({ name: 'body', in: 'body', schema })
  return {
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': { group: kind.group, version: kind.version, kind: kind.kind },
    operationId: `${operation.action}${kind.version}${kind.kind}${kind.group.replaceAll(/\W/g, '')}`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(dialect === 'v2'
      ? { consumes: isPatch ? bodyTypes : ['*/*'], produces: ['application/json'] }
      : operation.takesBody
        ? { requestBody: { content: Object.fromEntries(bodyTypes.map((type) => [type, { schema }])) } }
        : {}),
    responses: {
      '200':
        dialect === 'v2'
          ? { description: 'OK', schema: { $ref } }
          : { description: 'OK', content: { 'application/json': { schema: { $ref } } } },
    },
  }
}
