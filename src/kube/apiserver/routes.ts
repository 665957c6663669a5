// Answers requests for resources: finds the kind, and calls the operation that method and path mean.
import type { KindDefinition, KubeObject, Verb } from '../../api/index.ts'
import { type Core, findEntry, present } from './core.ts'
import { ApiError, badRequest, methodNotAllowed, notFound, pathNotFound, unsupportedMediaType } from './errors.ts'
import { type Exchange, readBody } from './http/exchange.ts'
import { mediaType, parseAccept, parseBody, type Wanted } from './http/media.ts'
import { sendJson, sendObject } from './http/respond.ts'
import { isObject } from './json.ts'
import { isStored } from './kinds.ts'
import { createObject } from './operations/create.ts'
import { type DeleteOptions, deleteObject, parseDeleteOptions } from './operations/delete.ts'
import { type PatchType, patchObject, patchTypes } from './operations/patch.ts'
import type { FieldValidation, WriteRequest } from './operations/request.ts'
import { updateObject } from './operations/update.ts'
import { isTrue, type RequestTarget, verbOf } from './path.ts'
import { readPage, sendPage } from './read/list.ts'
import { type Selection, selectionOf } from './read/selection.ts'
import { type ViewContext, viewEntry, viewObject } from './read/views.ts'
import { serveWatch } from './read/watch.ts'
import { bindPod, evictPod } from './subresources/pods.ts'
import { readScale, writeScale } from './subresources/scale.ts'
import type { ApiCore, AuthenticatedUser, SpecialHandler } from './types.ts'

export interface Routes {
  readonly core: Core
  readonly api: ApiCore
  readonly special: readonly SpecialHandler[]
  readonly closing: AbortSignal
}

export type ResourceTarget = Extract<RequestTarget, { kind: 'resource' }>

interface Call {
  readonly routes: Routes
  readonly exchange: Exchange
  readonly target: ResourceTarget
  readonly kind: KindDefinition
  readonly user: AuthenticatedUser
  readonly query: URLSearchParams
}

/**
 * Throws ApiError 404 for a resource of the whole cluster as if it were in a namespace: who may do everything in that namespace would be
 * allowed what is not in it.
 */
export function refuseWrongScope({ kinds }: Core, { group, version, plural, namespace }: ResourceTarget): void {
  const kind = kinds.find(group, version, plural)
  if (kind === undefined) return
  if (kind.namespaced ? namespace === '' : namespace !== undefined) throw pathNotFound()
}

export async function serveResource(
  routes: Routes,
  exchange: Exchange,
  target: ResourceTarget,
  user: AuthenticatedUser,
): Promise<void> {
  const query = exchange.url.searchParams
  const kind = routes.core.kinds.find(target.group, target.version, target.plural)
  const special = routes.special.find(
    (one) =>
      one.group === target.group &&
      one.version === target.version &&
      one.plural === target.plural &&
      one.subresource === target.subresource,
  )
  if (special?.methods.includes(exchange.method) === true) return serveSpecial(routes, special, exchange, target, user)
  if (kind === undefined) throw pathNotFound()
  if (kind.deprecationWarning !== undefined) exchange.warnings.push(kind.deprecationWarning)
  const call: Call = { routes, exchange, target, kind, user, query }
  if (target.subresource !== undefined) return serveSubresource(call, target.subresource)
  if (!isStored(kind)) throw methodNotAllowed()
  const verb = verbOf(exchange.method, target, query)
  if (kind.verbs !== undefined && !kind.verbs.includes(verb as Verb)) throw methodNotAllowed()
  switch (verb) {
    case 'get':
      return get(call)
    case 'list':
      return sendPage(exchange, kind, readPage(routes.core, kind, selection(call), query), view(call))
    case 'watch':
      return serveWatch(routes.core, exchange, kind, selection(call), view(call), routes.closing)
    case 'create':
      return create(call)
    case 'update':
      return update(call)
    case 'patch':
      return patch(call)
    case 'delete':
      return remove(call)
    case 'deletecollection':
      return removeCollection(call)
    default:
      throw methodNotAllowed()
  }
}

async function serveSpecial(
  routes: Routes,
  special: SpecialHandler,
  exchange: Exchange,
  target: ResourceTarget,
  user: AuthenticatedUser,
): Promise<void> {
  const body = await bodyOf(exchange)
  const query = exchange.url.searchParams
  const answer = await special.handle({
    core: routes.api,
    user,
    method: exchange.method,
    query,
    body,
    dryRun: isDryRun(query),
    ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
    ...(target.name === undefined ? {} : { name: target.name }),
  })
  sendObject(exchange, answer.status, answer.body)
}

async function serveSubresource(call: Call, subresource: string): Promise<void> {
  const { kind, exchange, routes, target } = call
  const { status, scale, others } = kind.subresources
  const name = nameOf(call)
  if (subresource === 'status' && status === true) {
    if (exchange.method === 'GET') return get(call)
    if (exchange.method === 'PUT') return update(call)
    if (exchange.method === 'PATCH') return patch(call)
  }
  if (subresource === 'scale' && scale !== undefined) {
    const namespace = target.namespace ?? ''
    if (exchange.method === 'GET')
      return sendObject(exchange, 200, readScale(routes.core, kind, scale, namespace, name))
    if (exchange.method === 'PUT' || exchange.method === 'PATCH') {
      const type = exchange.method === 'PATCH' ? patchType(exchange) : undefined
      return sendObject(
        exchange,
        200,
        await writeScale(routes.core, writeRequest(call), scale, name, await bodyOf(exchange), type),
      )
    }
  }
  if (others?.[subresource] === undefined) throw pathNotFound()
  if (kind.group === '' && kind.kind === 'Pod' && exchange.method === 'POST') {
    if (subresource === 'binding') {
      await bindPod(routes.core, writeRequest(call), name, await bodyOf(exchange))
      return sendObject(exchange, 201, success())
    }
    if (subresource === 'eviction') {
      const body = await bodyOf(exchange)
      await evictPod(routes.core, writeRequest(call), name, body)
      return sendObject(exchange, 201, success())
    }
  }
  if (['finalize', 'approval', 'ephemeralcontainers', 'resize'].includes(subresource)) {
    if (exchange.method === 'GET') return get(call)
    if (exchange.method === 'PUT') return update(call)
    if (exchange.method === 'PATCH') return patch(call)
  }
  throw methodNotAllowed()
}

function get(call: Call): void {
  const { kind, exchange, routes } = call
  const name = nameOf(call)
  const entry = findEntry(routes.core, kind, namespaceOf(call), name)
  if (entry === undefined) throw notFound(kind, name)
  const context = view(call)
  if (context.wanted.format === 'yaml') {
    sendObject(exchange, 200, viewObject(context, present(kind, entry)), 'yaml')
  } else sendJson(exchange, 200, viewEntry(context, entry))
}

async function create(call: Call): Promise<void> {
  const { kind, routes, target } = call
  if (target.name !== undefined) throw methodNotAllowed()
  const body = await bodyOf(call.exchange)
  if (kind.namespaced && target.namespace === undefined) {
    throw badRequest('an empty namespace may not be set during creation')
  }
  if (kind.group === '' && kind.kind === 'Binding') throw methodNotAllowed()
  respond(call, 201, await createObject(routes.core, writeRequest(call), body))
}

/** Kinds of which a PUT may create the object. */
const createdByPut = new Set(['/Event', '/Endpoints', 'coordination.k8s.io/Lease', 'events.k8s.io/Event'])

async function update(call: Call): Promise<void> {
  const { kind, routes, target } = call
  const name = nameOf(call)
  const request = writeRequest(call)
  const body = await bodyOf(call.exchange)
  const mayCreate = createdByPut.has(`${kind.group}/${kind.kind}`) && target.subresource === undefined
  if (mayCreate && findEntry(routes.core, kind, request.namespace, name) === undefined) {
    return respond(call, 201, await createObject(routes.core, request, body, { name }))
  }
  const { object } = await updateObject(routes.core, request, name, {
    fields: 'track',
    mustNameVersion: kind.custom === true,
    next: () => body as KubeObject,
  })
  respond(call, 200, object)
}

async function patch(call: Call): Promise<void> {
  const { routes, exchange, query } = call
  const type = patchType(exchange)
  const force = isTrue(query.get('force'))
  if (type === 'apply' && (query.get('fieldManager') ?? '') === '') {
    const message = 'Required value: is required for apply patch'
    throw new ApiError(422, 'Invalid', `PatchOptions.meta.k8s.io "" is invalid: fieldManager: ${message}`, {
      group: 'meta.k8s.io',
      kind: 'PatchOptions',
      causes: [{ reason: 'FieldValueRequired', field: 'fieldManager', message }],
    })
  }
  if (force && type !== 'apply') {
    const message = 'Forbidden: may not be specified for non-apply patch'
    throw new ApiError(422, 'Invalid', `PatchOptions.meta.k8s.io "" is invalid: force: ${message}`, {
      group: 'meta.k8s.io',
      kind: 'PatchOptions',
      causes: [{ reason: 'FieldValueForbidden', field: 'force', message }],
    })
  }
  const body = await bodyOf(exchange)
  const result = await patchObject(routes.core, writeRequest(call), nameOf(call), { type, body, force })
  respond(call, result.created ? 201 : 200, result.object)
}

async function remove(call: Call): Promise<void> {
  const { kind, routes } = call
  const options = parseDeleteOptions(await bodyOf(call.exchange), call.query)
  const name = nameOf(call)
  const { object, removed } = await deleteObject(routes.core, deleteRequest(call, options), name, options)
  if (!removed || kind.kind === 'Pod') return respond(call, 200, object)
  const { uid } = object.metadata
  const group = kind.group === '' ? {} : { group: kind.group }
  sendObject(call.exchange, 200, { ...success(), details: { name, ...group, kind: kind.plural, uid } })
}

async function removeCollection(call: Call): Promise<void> {
  const { kind, routes, exchange } = call
  const options = parseDeleteOptions(await bodyOf(exchange), call.query)
  const page = readPage(routes.core, kind, selection(call), call.query)
  const request = deleteRequest(call, options)
  for (const entry of page.entries) {
    try {
      await deleteObject(routes.core, { ...request, namespace: entry.namespace }, entry.name, options)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error
    }
  }
  await sendPage(exchange, kind, page, view(call))
}

function respond(call: Call, status: number, object: KubeObject): void {
  const context = view(call)
  sendObject(call.exchange, status, viewObject(context, object), context.wanted.format)
}

function success(): { kind: string; apiVersion: string; metadata: object; status: string } {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' }
}

function nameOf({ target }: Call): string {
  if (target.name === undefined) throw methodNotAllowed()
  return target.name
}

function namespaceOf({ kind, target }: Call): string {
  return kind.namespaced ? (target.namespace ?? '') : ''
}

function selection({ kind, target, query }: Call): Selection {
  return selectionOf(kind, {
    labelSelector: query.get('labelSelector'),
    fieldSelector: query.get('fieldSelector'),
    ...(target.name === undefined ? {} : { name: target.name }),
    ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
  })
}

function view({ exchange, kind, query, routes }: Call): ViewContext {
  const wanted: Wanted = parseAccept(exchange.request.headers.accept)
  const include = query.get('includeObject')
  return {
    kind,
    wanted,
    include: include === 'Object' || include === 'None' ? include : 'Metadata',
    now: routes.core.now(),
  }
}

function isDryRun(query: URLSearchParams): boolean {
  const values = query.getAll('dryRun').filter((value) => value !== '')
  if (values.some((value) => value !== 'All')) {
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(values)}: supported values: "All"`)
  }
  return values.length > 0
}

const validations: readonly string[] = ['Strict', 'Warn', 'Ignore']

function writeRequest(call: Call): WriteRequest {
  const { exchange, kind, target, user, query } = call
  const validation = query.get('fieldValidation') ?? 'Warn'
  if (!validations.includes(validation)) {
    throw badRequest(
      `fieldValidation: Unsupported value: "${validation}": supported values: "Ignore", "Strict", "Warn"`,
    )
  }
  const dryRun = isDryRun(query)
  const fieldManager = query.get('fieldManager')
  return {
    kind,
    namespace: namespaceOf(call),
    user,
    dryRun,
    fieldManager: fieldManager ?? managerFromAgent(exchange.request.headers['user-agent']),
    fieldValidation: validation as FieldValidation,
    warnings: exchange.warnings,
    options: {
      kind: `${exchange.method === 'POST' ? 'Create' : exchange.method === 'PATCH' ? 'Patch' : 'Update'}Options`,
      apiVersion: 'meta.k8s.io/v1',
      ...(dryRun ? { dryRun: ['All'] } : {}),
      ...(fieldManager === null ? {} : { fieldManager }),
    },
    ...(target.subresource === undefined ? {} : { subresource: target.subresource }),
  }
}

function deleteRequest(call: Call, options: DeleteOptions & { readonly dryRun: boolean }): WriteRequest {
  const { dryRun, ...rest } = options
  return {
    kind: call.kind,
    namespace: namespaceOf(call),
    user: call.user,
    dryRun,
    fieldManager: managerFromAgent(call.exchange.request.headers['user-agent']),
    fieldValidation: 'Ignore',
    warnings: call.exchange.warnings,
    options: { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1', ...rest, ...(dryRun ? { dryRun: ['All'] } : {}) },
  }
}

function managerFromAgent(agent: string | undefined): string {
  const name = (agent ?? '').split('/')[0] ?? ''
  return name === '' ? 'unknown' : name.slice(0, 128)
}

async function bodyOf(exchange: Exchange): Promise<unknown> {
  const { headers } = exchange.request
  const body = parseBody(await readBody(exchange.request), mediaType(headers['content-type']))
  return isObject(body) || Array.isArray(body) || body === undefined ? body : refuseScalar()
}

function refuseScalar(): never {
  throw badRequest('the body of the request must be a JSON object')
}

function patchType(exchange: Exchange): PatchType {
  const type = mediaType(exchange.request.headers['content-type'])
  const found = Object.entries(patchTypes).find(([name]) => name === type)
  if (found === undefined) {
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: ${Object.keys(patchTypes).join(', ')}`,
    )
  }
  return found[1]
}
