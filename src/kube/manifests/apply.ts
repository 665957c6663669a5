// Applies manifests by server-side apply. All are checked by the server first: when one is wrong, nothing is changed.
import { apiVersionOf, type KubeObject, type Resource, resources } from '../../api/index.ts'
import { isKubeError } from '../errors.ts'
import type { KubeClient } from '../types.ts'
import { type FieldPath, fieldText, type Manifest, ManifestError, type ManifestProblem, parseField } from './read.ts'

export interface Applied {
  readonly resource: Resource
  readonly object: KubeObject
  readonly outcome: 'created' | 'configured' | 'unchanged'
}

export interface ApplyOptions {
  /** For objects that name none. */
  readonly namespace: string
  readonly fieldManager: string
  /** Only check. */
  readonly dryRun?: boolean
}

interface Planned {
  readonly manifest: Manifest
  readonly resource: Resource
  readonly object: KubeObject
}

/**
 * Checks all manifests, then applies them: definitions of kinds first, then namespaces, then the rest in the order given.
 * Throws a ManifestError with every problem found, before anything is changed.
 */
export async function applyManifests(
  client: KubeClient,
  manifests: readonly Manifest[],
  options: ApplyOptions,
): Promise<Applied[]> {
  const definitions = manifests.filter(({ object }) => object.kind === 'CustomResourceDefinition')
  const others = manifests.filter((manifest) => !definitions.includes(manifest))
  const defined = new Set(definitions.flatMap(({ object }) => definedKinds(object)))
  const early = others.filter(({ object }) => !defined.has(`${object.apiVersion} ${object.kind}`))
  const plan = [...(await resolveAll(client, definitions, options)), ...(await resolveAll(client, early, options))]
  await checkAll(client, plan, options)
  if (options.dryRun) return plan.map(({ resource, object }) => ({ resource, object, outcome: 'unchanged' }))
  const applied: Applied[] = []
  const order = (one: Planned): number =>
    one.resource.kind === 'CustomResourceDefinition' ? 0 : one.resource.kind === 'Namespace' ? 1 : 2
  for (const one of plan.toSorted((a, b) => order(a) - order(b))) applied.push(await applyOne(client, one, options))
  // Objects of kinds that were only just defined can't be checked before their definition is in force.
  const late = others.filter((manifest) => !early.includes(manifest))
  for (const one of await resolveAll(client, late, options, 50)) applied.push(await applyOne(client, one, options))
  return applied
}

/** Deletes what the manifests name, in reverse order. Resolves with the objects that were there. */
export async function deleteManifests(
  client: KubeClient,
  manifests: readonly Manifest[],
  options: Pick<ApplyOptions, 'namespace'>,
): Promise<{ resource: Resource; object: KubeObject }[]> {
  const plan = await resolveAll(client, manifests, { ...options, fieldManager: '' })
  const deleted: { resource: Resource; object: KubeObject }[] = []
  for (const { resource, object } of plan.toReversed()) {
    const { namespace, name } = object.metadata
    if (await client.delete(resource, namespace === undefined ? { name } : { namespace, name }))
      deleted.push({ resource, object })
  }
  return deleted
}

function definedKinds({ spec }: KubeObject): string[] {
  const { group, names, versions } = (spec ?? {}) as {
    group?: string
    names?: { kind?: string }
    versions?: unknown
  }
  // What is wrong with a definition the server says.
  const list: readonly ({ name?: string } | null)[] = Array.isArray(versions) ? versions : []
  return list.map((version) => `${group}/${version?.name} ${names?.kind}`)
}

async function resolveAll(
  client: KubeClient,
  manifests: readonly Manifest[],
  options: ApplyOptions,
  retries = 0,
): Promise<Planned[]> {
  const problems: ManifestProblem[] = []
  const plan: Planned[] = []
  for (const manifest of manifests) {
    const { apiVersion, kind, metadata } = manifest.object
    let resource = await client.resolve(apiVersion, kind)
    for (let left = retries; resource === undefined && left > 0; left -= 1) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      resource = await client.resolve(apiVersion, kind)
    }
    if (resource === undefined) {
      problems.push({
        file: manifest.file,
        line: manifest.lineOf(['kind']),
        field: 'kind',
        message: `the server has no kind ${kind} in ${apiVersion}: check the spelling of both, or apply its CustomResourceDefinition`,
      })
    } else if (resource.namespaced) {
      const namespace = metadata.namespace ?? options.namespace
      plan.push({ manifest, resource, object: { ...manifest.object, metadata: { ...metadata, namespace } } })
    } else {
      const { namespace: _ignored, ...rest } = metadata
      plan.push({ manifest, resource, object: { ...manifest.object, metadata: rest } })
    }
  }
  if (problems.length > 0) throw new ManifestError(problems)
  return plan
}

/** A namespace that is always there: objects of namespaces still to be created are checked in it. */
const checkingNamespace = 'default'

async function checkAll(client: KubeClient, plan: readonly Planned[], options: ApplyOptions): Promise<void> {
  const created = new Set(
    plan.filter(({ resource }) => resource.kind === 'Namespace').map(({ object }) => object.metadata.name),
  )
  const problems: ManifestProblem[] = []
  for (const { manifest, resource, object } of plan) {
    const { namespace } = object.metadata
    const missing =
      namespace !== undefined && (await client.get(resources.namespaces, { name: namespace })) === undefined
    if (missing && !created.has(namespace)) {
      problems.push({
        file: manifest.file,
        line: manifest.lineOf(['metadata', 'namespace']),
        field: 'metadata.namespace',
        message: `namespace "${namespace}" does not exist: create it first, or add its manifest`,
      })
      continue
    }
    const checked = missing ? { ...object, metadata: { ...object.metadata, namespace: checkingNamespace } } : object
    const dryRun = { ...options, dryRun: true }
    const found = await refusal(patch(client, resource, checked, dryRun), manifest)
    // A server that meets unknown fields looks no further: what else is wrong shows without them.
    const isStrict = found.some(({ message }) => message.startsWith(unknownField))
    const others = isStrict ? await refusal(patch(client, resource, checked, dryRun, 'Ignore'), manifest) : []
    problems.push(...found, ...others)
  }
  if (problems.length > 0) throw new ManifestError(problems)
}

async function refusal(answer: Promise<KubeObject>, manifest: Manifest): Promise<ManifestProblem[]> {
  try {
    await answer
    return []
  } catch (error) {
    return problemsOf(error, manifest)
  }
}

async function applyOne(
  client: KubeClient,
  { manifest, resource, object }: Planned,
  options: ApplyOptions,
): Promise<Applied> {
  const { namespace, name } = object.metadata
  const before = await client.get(resource, namespace === undefined ? { name } : { namespace, name })
  try {
    const after = await patch(client, resource, object, options)
    const same = before?.metadata.resourceVersion === after.metadata.resourceVersion
    return { resource, object: after, outcome: before === undefined ? 'created' : same ? 'unchanged' : 'configured' }
  } catch (error) {
    throw new ManifestError(problemsOf(error, manifest))
  }
}

function patch(
  client: KubeClient,
  resource: Resource,
  object: KubeObject,
  options: ApplyOptions,
  fieldValidation: 'Strict' | 'Ignore' = 'Strict',
): Promise<KubeObject> {
  const { namespace, name } = object.metadata
  const body = { ...object, apiVersion: apiVersionOf(resource) }
  return client.patch(
    resource,
    namespace === undefined ? { name } : { namespace, name },
    { kind: 'apply', body, fieldManager: options.fieldManager, force: true },
    { fieldValidation, ...(options.dryRun ? { dryRun: true } : {}) },
  )
}

const unknownField = 'unknown field'

interface StatusDetails {
  readonly message?: string
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] }
}

/** The server's refusal, each cause with its field and the line it stands on. Anything but a refusal is thrown again. */
function problemsOf(error: unknown, manifest: Manifest): ManifestProblem[] {
  if (!isKubeError(error) || error.code < 400 || error.code >= 500) throw error
  const { kind, metadata } = manifest.object
  const at = (path: FieldPath, message: string): ManifestProblem => ({
    file: manifest.file,
    line: manifest.lineOf(path),
    ...(path.length === 0 ? {} : { field: fieldText(path) }),
    message: `${message} (${kind} ${metadata.name})`,
  })
  const status = error.status as StatusDetails | undefined
  const causes =
    status?.details?.causes?.filter(({ field }) => field !== undefined && field !== '' && field !== '<nil>') ?? []
  if (causes.length > 0) return causes.map(({ field, message }) => at(parseField(field ?? ''), message ?? ''))
  const message = status?.message ?? error.message
  const unknown = [...message.matchAll(/unknown field "([^"]+)"/g)].map(([, field]) => field ?? '')
  if (unknown.length > 0) return unknown.map((field) => at(parseField(field), unknownField))
  return [at([], message)]
}
