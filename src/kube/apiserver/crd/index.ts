// Custom resources: serves the kinds that CustomResourceDefinitions in the store declare.
import {
  type CrdNames,
  type CustomResourceDefinition,
  kindsOfCrd,
  loadMeshCrds,
  validateCrd,
} from '../../../api/index.ts'
import { invalid } from '../errors.ts'
import { revise } from '../revise.ts'
import type { AdmissionPlugin, ApiCore, ApiExtension, KindDefinition, KubeObject } from '../types.ts'
import { compileRules } from './rules.ts'

const group = 'apiextensions.k8s.io'
const plural = 'customresourcedefinitions'
const cleanup = 'customresourcecleanup.apiextensions.k8s.io'

export interface CustomResourceOptions {
  /** Definitions that the server creates, and updates when they differ. Those of Istio and of the Gateway API when absent. */
  readonly definitions?: readonly CustomResourceDefinition[]
}

export function createCustomResourceExtension(options: CustomResourceOptions = {}): ApiExtension {
  let unsubscribe = (): void => undefined
  return {
    name: 'custom-resources',
    admission: [createCrdAdmission()],
    async start(core) {
      const kind = core.kinds.find(group, 'v1', plural)
      if (kind === undefined) throw new Error(`${group} ${plural} is not served`)
      unsubscribe = serveDefinitions(core, kind)
      for (const definition of options.definitions ?? (await loadMeshCrds())) await ensure(core, kind, definition)
    },
    close: async () => unsubscribe(),
  }
}

function createCrdAdmission(): AdmissionPlugin {
  const concerns = (kind: KindDefinition): boolean => kind.group === group && kind.plural === plural
  return {
    name: 'CustomResourceDefinitions',
    async mutate({ kind, object, operation }) {
      if (!concerns(kind) || object === undefined || operation !== 'CREATE') return
      object.metadata.finalizers = [...new Set([...(object.metadata.finalizers ?? []), cleanup])]
    },
    async validate({ kind, object, oldObject, name, subresource, warnings }) {
      if (!concerns(kind) || object === undefined || subresource !== undefined) return
      if (object.metadata.deletionTimestamp !== undefined) return
      const causes = validateCrd(object as CustomResourceDefinition, oldObject as CustomResourceDefinition | undefined)
      if (causes.length > 0) throw invalid(kind, name, causes)
      warnOfRules(object as CustomResourceDefinition, warnings)
    },
  }
}

/** Registers the kinds of all definitions, from now on; returns the function that ends it. */
function serveDefinitions(core: ApiCore, kind: KindDefinition): () => void {
  return core.objects.subscribe(group, plural, (change) => {
    const crd = change.object as CustomResourceDefinition
    const { name } = crd.metadata
    if (change.kind === 'deleted') {
      core.kinds.register(`crd/${name}`, [])
      return
    }
    const conflict = nameConflict(core, crd)
    if (
      conflict === undefined &&
      JSON.stringify(crd.spec) !== JSON.stringify((change.old as typeof crd | undefined)?.spec)
    ) {
      core.kinds.register(`crd/${name}`, kindsOfCrd(crd).map(withRules))
    }
    const settle = crd.metadata.deletionTimestamp === undefined ? accept : removeInstances
    settle(core, kind, crd, conflict).catch((error: unknown) => {
      process.emitWarning(`CustomResourceDefinition ${name}: ${String(error)}`)
    })
  })
}

/** The rules of the schema are checked once its shape is right. They are compiled when first needed. */
function withRules(kind: KindDefinition): KindDefinition {
  const { schema, validate } = kind
  if (schema === undefined) return kind
  let rules: ReturnType<typeof compileRules> | undefined
  return {
    ...kind,
    validate(object, old) {
      const causes = validate?.(object, old) ?? []
      if (causes.length > 0) return causes
      rules ??= compileRules(schema)
      return rules.check(object, old)
    },
  }
}

/** Tells the author of a definition which of its rules this server cannot evaluate. */
function warnOfRules(crd: CustomResourceDefinition, warnings: string[]): void {
  for (const version of crd.spec?.versions ?? []) {
    const schema = version.schema?.openAPIV3Schema
    if (schema === undefined) continue
    for (const rule of compileRules(schema).unsupported) {
      warnings.push(`version ${version.name}: rule is not enforced by this server: ${rule}`)
    }
  }
}

/** What another definition of the group already uses; undefined when nothing is. */
function nameConflict(core: ApiCore, crd: CustomResourceDefinition): string | undefined {
  const others = (core.objects.list(group, plural) as CustomResourceDefinition[]).filter(
    (other) => other.metadata.name !== crd.metadata.name && other.spec?.group === crd.spec?.group,
  )
  for (const { status } of others) {
    const accepted = status?.acceptedNames
    if (accepted === undefined) continue
    if (accepted.kind === crd.spec?.names.kind) return `"${accepted.kind}" is already in use`
  }
  return undefined
}

async function accept(
  core: ApiCore,
  kind: KindDefinition,
  crd: CustomResourceDefinition,
  conflict: string | undefined,
): Promise<void> {
  await revise<CustomResourceDefinition>(
    core,
    kind,
    { name: crd.metadata.name },
    (current) => {
      const status = acceptedStatus(current, conflict)
      if (status === undefined) return undefined
      return { ...current, status }
    },
    { subresource: 'status' },
  )
}

/** The status that a definition should have; undefined when it has it. */
function acceptedStatus(
  crd: CustomResourceDefinition,
  conflict: string | undefined,
): CustomResourceDefinition['status'] {
  const { spec, status } = crd
  if (spec === undefined) return undefined
  const names: CrdNames = {
    ...spec.names,
    listKind: spec.names.listKind ?? `${spec.names.kind}List`,
    singular: spec.names.singular ?? spec.names.kind.toLowerCase(),
  }
  const stored = spec.versions.find((version) => version.storage)?.name ?? ''
  const storedVersions = [...new Set([...(status?.storedVersions ?? []), stored])]
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const isAccepted = conflict === undefined
  const conditions = [
    condition(
      'NamesAccepted',
      isAccepted,
      isAccepted ? 'NoConflicts' : 'KindConflict',
      conflict ?? 'no conflicts found',
    ),
    isAccepted
      ? condition('Established', true, 'InitialNamesAccepted', 'the initial names have been accepted')
      : condition('Established', false, 'NotAccepted', 'not all names are accepted'),
  ].map((wanted) => {
    const existing = status?.conditions?.find(({ type }) => type === wanted.type)
    return existing?.status === wanted.status ? existing : { ...wanted, lastTransitionTime }
  })
  const acceptedNames = isAccepted ? names : (status?.acceptedNames ?? { plural: '', kind: '' })
  const wanted = { conditions, acceptedNames, storedVersions }
  const isCurrent =
    JSON.stringify(status?.acceptedNames) === JSON.stringify(acceptedNames) &&
    JSON.stringify(status?.conditions) === JSON.stringify(conditions) &&
    JSON.stringify(status?.storedVersions) === JSON.stringify(storedVersions)
  return isCurrent ? undefined : wanted
}

function condition(type: string, isTrue: boolean, reason: string, message: string) {
  return { type, status: isTrue ? ('True' as const) : ('False' as const), reason, message }
}

/** Deletes the objects of a definition that is being deleted, then lets the definition go. */
async function removeInstances(core: ApiCore, kind: KindDefinition, crd: CustomResourceDefinition): Promise<void> {
  if (crd.metadata.finalizers?.includes(cleanup) !== true) return
  const [served] = kindsOfCrd(crd)
  if (served !== undefined) {
    const list = (): KubeObject[] => core.objects.list(served.group, served.plural)
    for (const { metadata } of list()) {
      const { name, namespace } = metadata
      await core.delete(served, namespace === undefined ? { name } : { name, namespace }).catch(ignoreMissing)
    }
    await untilGone(core, served, list)
  }
  await revise(core, kind, { name: crd.metadata.name }, (current) => {
    const finalizers = (current.metadata.finalizers ?? []).filter((finalizer) => finalizer !== cleanup)
    return { ...current, metadata: { ...current.metadata, finalizers } }
  })
}

/** Resolves when the last object is gone: finalizers of objects may take any time. */
function untilGone(core: ApiCore, kind: KindDefinition, list: () => KubeObject[]): Promise<void> {
  if (list().length === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const unsubscribe = core.objects.subscribe(kind.group, kind.plural, (change) => {
      if (change.kind !== 'deleted' || list().length > 0) return
      unsubscribe()
      resolve()
    })
  })
}

function ignoreMissing(error: unknown): void {
  if ((error as { code?: number }).code !== 404) throw error
}

async function ensure(core: ApiCore, kind: KindDefinition, definition: CustomResourceDefinition): Promise<void> {
  const { name } = definition.metadata
  const existing = core.objects.get(group, plural, { name }) as CustomResourceDefinition | undefined
  if (existing === undefined) {
    await core.create(kind, structuredClone(definition))
    return
  }
  await revise<CustomResourceDefinition>(core, kind, { name }, (current) => {
    const isCurrent = JSON.stringify(current.spec?.versions) === JSON.stringify(definition.spec?.versions)
    if (isCurrent || definition.spec === undefined) return undefined
    return { ...current, spec: { ...current.spec, ...definition.spec } }
  })
}
