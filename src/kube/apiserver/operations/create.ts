// POST: a new object.
import { randomUUID } from 'node:crypto'
import { apiVersionOf, type KubeObject } from '../../../api/index.ts'
import { trackUpdate } from '../apply/managed-fields.ts'
import { type Core, findEntry, toStored } from '../core.ts'
import { ApiError, alreadyExists, badRequest, forbidden, notFound } from '../errors.ts'
import { clone } from '../json.ts'
import { hasGeneration, storageOf } from '../kinds.ts'
import { generateName, timestamp } from '../metadata.ts'
import { prepareForCreate } from '../strategy.ts'
import { acceptObject, admit, refuseInvalid, type WriteRequest } from './request.ts'

const generatedNameTries = 8

export interface CreateOptions {
  /** From the URL, where a PUT or an apply creates. */
  readonly name?: string
  /** `manual`: the body has metadata.managedFields already (server-side apply). */
  readonly fields?: 'track' | 'manual'
}

/** `body`: as received. */
export async function createObject(
  core: Core,
  request: WriteRequest,
  body: unknown,
  { name, fields = 'track' }: CreateOptions = {},
): Promise<KubeObject> {
  const object = acceptObject(request, body)
  const { kind, namespace } = request
  const { metadata } = object
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '' && name === undefined) {
    throw badRequest('resourceVersion should not be set on objects to be created')
  }
  if (name !== undefined && metadata.name === '') metadata.name = name
  const generated = metadata.name === '' && typeof metadata.generateName === 'string' && metadata.generateName !== ''
  for (let attempt = 1; ; attempt += 1) {
    try {
      const candidate = generated ? clone(object) : object
      if (generated) candidate.metadata.name = generateName(metadata.generateName ?? '')
      return await createNamed(core, request, candidate)
    } catch (error) {
      const taken = error instanceof ApiError && error.reason === 'AlreadyExists'
      if (!generated || !taken || attempt === generatedNameTries) throw error
    }
  }

  async function createNamed(core: Core, request: WriteRequest, object: KubeObject): Promise<KubeObject> {
    refuseBadNamespace(core, request, object.metadata.name)
    initializeMetadata(core, request, object)
    prepareForCreate(kind, object)
    kind.applyDefaults?.(object)
    // Before admission: what plugins add is not the writer's.
    if (fields === 'track') {
      const { fieldManager: manager } = request
      trackUpdate(kind, undefined, object, { manager, apiVersion: apiVersionOf(kind), now: core.now() })
    }
    const admitted = await admit(core, request, 'CREATE', object, undefined, (candidate) =>
      refuseInvalid(kind, candidate, undefined),
    )
    // From here on everything is synchronous: nothing can come between these checks and the write.
    refuseBadNamespace(core, request, object.metadata.name)
    if (findEntry(core, kind, namespace, admitted.metadata.name) !== undefined) {
      throw alreadyExists(kind, admitted.metadata.name)
    }
    core.addresses.assign(kind, admitted, undefined)
    if (request.dryRun) return admitted
    const stored = toStored(kind, admitted)
    const entry = core.store.put(storageOf(kind), stored)
    admitted.metadata.resourceVersion = String(entry.revision)
    return admitted
  }
}

export function initializeMetadata(core: Core, request: WriteRequest, object: KubeObject): void {
  const { metadata } = object
  delete metadata.resourceVersion
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  Reflect.deleteProperty(metadata, 'selfLink')
  metadata.uid = randomUUID()
  metadata.creationTimestamp = timestamp(core.now())
  if (hasGeneration(request.kind)) metadata.generation = 1
  else delete metadata.generation
}

function refuseBadNamespace(core: Core, request: WriteRequest, name: string): void {
  const { kind, namespace } = request
  if (!kind.namespaced) return
  const found = core.store.get('/namespaces', '', namespace)
  if (found === undefined) throw notFound({ group: '', plural: 'namespaces' }, namespace)
  if (found.object.metadata.deletionTimestamp === undefined) return
  const error = forbidden(
    kind,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  )
  throw new ApiError(error.code, error.reason, error.message, {
    ...error.details,
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  })
}
