// The client of one API server.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import type { Connection } from './connection.ts'
import { createResolver } from './discovery.ts'
import { errorOfConnection, errorOfResponse } from './errors.ts'
import { createInformer, type KubeLog } from './informer.ts'
import { listAll } from './list.ts'
import { collectionPath, objectPath, withQuery } from './paths.ts'
import { createServedVersions, inVersionOf } from './served-versions.ts'
import { createTransport, readText } from './transport.ts'
import type { Informer, KubeClient, Patch, WriteOptions } from './types.ts'

const idleTimeoutMs = 60_000

const patchTypes: Readonly<Record<Patch['kind'], string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is YAML.
  apply: 'application/apply-patch+yaml',
}

const silent: KubeLog = { debug: () => {}, warn: () => {} }

export interface ClientOptions {
  /** Sent as User-Agent; the first word is the default field manager. */
  readonly userAgent?: string
  readonly log?: KubeLog
}

/** A client over a connection already loaded. Closing it ends its informers and every request under way. */
export function clientOf(connection: Connection, options: ClientOptions = {}): KubeClient {
  const transport = createTransport(connection, options.userAgent ?? 'lateen')
  const log = options.log ?? silent
  const informers = new Set<AsyncDisposable>()
  const versions = createServedVersions()
  async function exchange<T>(
    method: string,
    path: string,
    body?: unknown,
    contentType = 'application/json',
  ): Promise<T> {
    const response = await transport.send({
      method,
      path,
      idleTimeoutMs,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': contentType } }),
    })
    const text = await bodyText(response, `${method} ${path}`)
    const status = response.statusCode ?? 0
    if (status < 200 || status > 299) {
      throw errorOfResponse(`${method} ${path}`, status, text, response.headers['retry-after'])
    }
    return (text === '' ? undefined : JSON.parse(text)) as T
  }

  /** A request for an object, in the version in which the server serves its kind; told in that of the resource. */
  function ask<T>(
    resource: Resource,
    method: string,
    pathIn: (served: Resource) => string,
    body?: unknown,
    contentType?: string,
  ): Promise<T> {
    const send = (served: Resource, body: unknown) => exchange<T>(method, pathIn(served), body, contentType)
    if (resource.otherVersions === undefined) return send(resource, body)
    return versions.find(
      resource,
      async (served) => inVersionOf(resource, await send(served, inVersionOf(served, body))),
      versions.of(resource),
    )
  }

  async function unless404<T>(work: Promise<T>): Promise<T | undefined> {
    try {
      return await work
    } catch (error) {
      if ((error as { code?: unknown }).code === 404) return undefined
      throw error
    }
  }

  return {
    server: connection.server,
    get: <T extends KubeObject>(resource: Resource, key: ObjectKey, subresource?: string) =>
      unless404(ask<T>(resource, 'GET', (served) => objectPath(served, key, subresource))),
    list: <T extends KubeObject>(resource: Resource, options = {}) =>
      versions.find(resource, (served) =>
        listAll<T>(transport, served, options, undefined, (object) => inVersionOf(resource, object)),
      ),
    create: <T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}) => {
      const key = { namespace: object.metadata.namespace ?? '', name: object.metadata.name }
      if (resource.namespaced && key.namespace === '') {
        throw new TypeError(`${resource.plural} ${key.name}: the namespace is missing`)
      }
      const pathIn = (served: Resource): string =>
        options.subresource ? objectPath(served, key, options.subresource) : collectionPath(served, key.namespace)
      return ask<T>(resource, 'POST', (served) => withQuery(pathIn(served), writeQuery(options)), object)
    },
    replace: <T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}) => {
      const pathIn = (served: Resource): string => objectPath(served, object.metadata, options.subresource)
      return ask<T>(resource, 'PUT', (served) => withQuery(pathIn(served), writeQuery(options)), object)
    },
    patch: <T extends KubeObject>(resource: Resource, key: ObjectKey, patch: Patch, options: WriteOptions = {}) => {
      const query = {
        ...writeQuery(options),
        ...(patch.kind === 'apply' ? { fieldManager: patch.fieldManager, force: patch.force } : {}),
      }
      const pathIn = (served: Resource): string => withQuery(objectPath(served, key, options.subresource), query)
      return ask<T>(resource, 'PATCH', pathIn, patch.body, patchTypes[patch.kind])
    },
    async delete(resource, key, options = {}) {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options }
      const gone = ask<unknown>(resource, 'DELETE', (served) => objectPath(served, key), body)
      return (await unless404(gone.then(() => true))) ?? false
    },
    createSubresource: (resource, key, subresource, body) =>
      ask(resource, 'POST', (served) => objectPath(served, key, subresource), body),
    informer<T extends KubeObject>(resource: Resource, options = {}): Informer<T> {
      const informer = createInformer<T>(transport, resource, options, log, undefined, versions)
      informers.add(informer)
      const dispose = async (): Promise<void> => {
        informers.delete(informer)
        await informer[Symbol.asyncDispose]()
      }
      return { ...informer, [Symbol.asyncDispose]: dispose }
    },
    resolve: createResolver(transport),
    async request(path, init = {}) {
      const { body, ...rest } = requestBody(init.body)
      const response = await transport.send({
        path,
        method: init.method ?? 'GET',
        headers: { ...rest.headers, ...init.headers },
        ...(body === undefined ? {} : { body }),
        ...(init.signal === undefined ? {} : { signal: init.signal }),
      })
      return fetchResponse(response)
    },
    async close() {
      await Promise.all([...informers].map((informer) => informer[Symbol.asyncDispose]()))
      informers.clear()
      transport.close()
    },
  }
}

function writeQuery(options: WriteOptions): Record<string, string | undefined> {
  return {
    dryRun: options.dryRun === true ? 'All' : undefined,
    fieldManager: options.fieldManager,
    fieldValidation: options.fieldValidation,
  }
}

/** Text and bytes go as they are; anything else as JSON. */
function requestBody(body: unknown): { body?: string | Uint8Array; headers: Record<string, string> } {
  if (body === undefined) return { headers: {} }
  if (typeof body === 'string' || body instanceof Uint8Array) return { body, headers: {} }
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

async function bodyText(response: IncomingMessage, request: string): Promise<string> {
  try {
    return await readText(response)
  } catch (cause) {
    throw errorOfConnection(request, cause)
  }
}

function fetchResponse(incoming: IncomingMessage): Response {
  const headers = new Headers()
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? '', incoming.rawHeaders[i + 1] ?? '')
  }
  const status = incoming.statusCode ?? 500
  const bodiless = status === 204 || status === 205 || status === 304
  if (bodiless) incoming.resume()
  const body = bodiless ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  return new Response(body, { status, statusText: incoming.statusMessage ?? '', headers })
}
