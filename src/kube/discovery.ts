// Which resource serves a kind, as the API server's discovery documents say.
import type { Resource } from '../api/index.ts'
import { errorOfResponse } from './errors.ts'
import { readText, type Transport } from './transport.ts'

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
  }[]
}

/** A function that resolves kinds. Documents are kept; a kind not found in one is looked for in a fresh one. */
export function createResolver(
  transport: Transport,
): (apiVersion: string, kind: string) => Promise<Resource | undefined> {
  const known = new Map<string, readonly Resource[]>()

  async function read(apiVersion: string): Promise<readonly Resource[]> {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
    const response = await transport.send({ path, idleTimeoutMs: 30_000 })
    const text = await readText(response)
    if (response.statusCode === 404) return []
    if (response.statusCode !== 200)
      throw errorOfResponse(`GET ${path}`, response.statusCode ?? 0, text, response.headers['retry-after'])
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion]
    return ((JSON.parse(text) as ResourceList).resources ?? [])
      .filter((entry) => !entry.name.includes('/'))
      .map((entry) => ({
        group: group ?? '',
        version: version ?? '',
        kind: entry.kind,
        plural: entry.name,
        namespaced: entry.namespaced,
      }))
  }

  return async (apiVersion, kind) => {
    const found = known.get(apiVersion)?.find((resource) => resource.kind === kind)
    if (found !== undefined) return found
    const fresh = await read(apiVersion)
    known.set(apiVersion, fresh)
    return fresh.find((resource) => resource.kind === kind)
  }
}
