// A complete list of a resource, page by page.
import { apiVersionOf, type KubeObject, type Resource } from '../api/index.ts'
import { errorOfResponse, isKubeError } from './errors.ts'
import { collectionPath, selection, withQuery } from './paths.ts'
import { readText, type Transport } from './transport.ts'
import type { ListOptions } from './types.ts'

const pageSize = 500
const idleTimeoutMs = 60_000

export interface Listing<T> {
  readonly items: T[]
  readonly resourceVersion: string
}

interface ListPage<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: T[] | null
}

/** Lists from the newest state, keeping of each object what `keep` gives. A continue token that expired on the way makes it start over, in one piece. */
export async function listAll<T extends KubeObject>(
  transport: Transport,
  resource: Resource,
  options: ListOptions,
  signal?: AbortSignal,
  keep: (object: T) => T = (object) => object,
): Promise<Listing<T>> {
  try {
    return await listPages<T>(transport, resource, options, pageSize, signal, keep)
  } catch (error) {
    if (!isKubeError(error, 410)) throw error
    return listPages<T>(transport, resource, options, undefined, signal, keep)
  }
}

async function listPages<T extends KubeObject>(
  transport: Transport,
  resource: Resource,
  options: ListOptions,
  limit: number | undefined,
  signal: AbortSignal | undefined,
  keep: (object: T) => T,
): Promise<Listing<T>> {
  const items: T[] = []
  let token: string | undefined
  let resourceVersion = ''
  do {
    const path = withQuery(collectionPath(resource, options.namespace), {
      ...selection(options),
      limit,
      continue: token,
    })
    const response = await transport.send({ path, idleTimeoutMs, ...(signal === undefined ? {} : { signal }) })
    const text = await readText(response)
    if (response.statusCode !== 200)
      throw errorOfResponse(`GET ${path}`, response.statusCode ?? 0, text, response.headers['retry-after'])
    const page = JSON.parse(text) as ListPage<T>
    // Items of a list come without their own type.
    for (const item of page.items ?? []) {
      const { apiVersion = apiVersionOf(resource), kind = resource.kind } = item
      items.push(keep({ ...item, apiVersion, kind }))
    }
    resourceVersion = page.metadata?.resourceVersion ?? resourceVersion
    token = page.metadata?.continue
  } while (token)
  return { items, resourceVersion }
}
