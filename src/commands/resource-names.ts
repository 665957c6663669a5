// Kinds as people type them: `po`, `pods`, `Pod`, `authorizationpolicies.security.istio.io`.
import type { Resource } from '../api/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { UsageError } from './connection.ts'

interface ApiResource {
  readonly name: string
  readonly singularName: string
  readonly kind: string
  readonly namespaced: boolean
  readonly shortNames?: readonly string[]
}

async function read<T>(client: KubeClient, path: string): Promise<T> {
  const response = await client.request(path)
  if (!response.ok) throw new Error(`GET ${path}: HTTP ${response.status}`)
  return (await response.json()) as T
}

/** The resource a word names, by the server's discovery. Core kinds win over others, preferred versions over others. Throws a UsageError. */
export async function findResource(client: KubeClient, word: string): Promise<Resource> {
  const { groups } = await read<{ groups: { preferredVersion: { groupVersion: string } }[] }>(client, '/apis')
  const groupVersions = ['v1', ...groups.map(({ preferredVersion }) => preferredVersion.groupVersion)]
  const lists = await Promise.all(
    groupVersions.map((of) => read<{ resources: ApiResource[] }>(client, of === 'v1' ? '/api/v1' : `/apis/${of}`)),
  )
  const wanted = word.toLowerCase()
  for (const [index, { resources }] of lists.entries()) {
    const [group = '', version = ''] = groupVersions[index]?.includes('/')
      ? (groupVersions[index]?.split('/') ?? [])
      : ['', 'v1']
    const found = resources
      .filter(({ name }) => !name.includes('/'))
      .find(({ name, singularName, kind, shortNames }) => {
        const names = [name, singularName, kind.toLowerCase(), ...(shortNames ?? [])]
        return names.includes(wanted) || (group !== '' && names.some((one) => `${one}.${group}` === wanted))
      })
    if (found !== undefined) {
      return { group, version, kind: found.kind, plural: found.name, namespaced: found.namespaced }
    }
  }
  throw new UsageError(`the server has no kind "${word}": "kubectl api-resources" lists those it has`)
}
