// CertificateSigningRequests: who asks is recorded by the server, approval is a right of its own, approved ones are signed.
import { badRequest, forbidden, invalid, notFound } from '../errors.ts'
import type {
  AdmissionPlugin,
  AdmissionRequest,
  ApiCore,
  Authorizer,
  KindDefinition,
  KubeObject,
  SpecialHandler,
  SpecialRequest,
} from '../types.ts'
import type { KeyPair } from './certificates.ts'
import { mayUseSigner } from './signer-rights.ts'
import { isOwnSigner, SigningError, type SigningRequestSpec, signRequest, validateSigningRequest } from './signers.ts'

const group = 'certificates.k8s.io'
const plural = 'certificatesigningrequests'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastUpdateTime?: string
  readonly lastTransitionTime?: string
}

type SigningRequest = KubeObject<
  SigningRequestSpec & { uid?: string; extra?: unknown },
  { conditions?: readonly Condition[]; certificate?: string }
>

const isTrue = (request: SigningRequest, type: string): boolean =>
  request.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true

/** Records the requester on create; checks the right to approve and to sign. */
export function createSigningRequestAdmission(authorizer: Authorizer): AdmissionPlugin {
  const require = async (request: AdmissionRequest, verb: string): Promise<void> => {
    const { spec } = (request.object ?? {}) as SigningRequest
    const signerName = spec?.signerName ?? ''
    if (await mayUseSigner(authorizer, request.user, verb, signerName)) return
    throw forbidden(
      { group, plural },
      request.name,
      `user not permitted to ${verb} requests with signerName "${signerName}"`,
    )
  }
  return {
    name: 'CertificateSigningRequests',
    async mutate(request) {
      if (!isSigningRequest(request.kind) || request.operation !== 'CREATE' || request.object === undefined) return
      const { user } = request
      const { username: _u, groups: _g, uid: _i, extra: _e, ...spec } = (request.object as SigningRequest).spec ?? {}
      request.object = {
        ...request.object,
        spec: {
          ...spec,
          username: user.name,
          groups: user.groups,
          ...(user.uid === undefined ? {} : { uid: user.uid }),
          ...(user.extra === undefined ? {} : { extra: user.extra }),
        },
      }
    },
    async validate(request) {
      if (!isSigningRequest(request.kind) || request.object === undefined) return
      const { spec } = request.object as SigningRequest
      if (request.operation === 'CREATE') {
        const causes = spec === undefined ? [] : await validateSigningRequest(spec)
        if (causes.length > 0) throw invalid(request.kind, request.name, causes)
      } else if (request.operation === 'UPDATE' && request.subresource === 'approval') {
        await require(request, 'approve')
      } else if (request.operation === 'UPDATE' && request.subresource === 'status') {
        await require(request, 'sign')
        requireSameDecision(request)
      }
    },
  }
}

/** Who may sign may not decide. */
function requireSameDecision({ kind, name, object, oldObject }: AdmissionRequest): void {
  const decision = (request: KubeObject | undefined): string =>
    JSON.stringify(['Approved', 'Denied'].map((type) => isTrue((request ?? {}) as SigningRequest, type)))
  if (decision(object) !== decision(oldObject))
    throw forbidden(kind, name, 'the approval subresource decides, not the status')
}

const isSigningRequest = (kind: KindDefinition): boolean => kind.group === group && kind.plural === plural

/** PUT and GET of the approval subresource: only conditions change. */
export function createApprovalHandler(): SpecialHandler {
  return {
    group,
    version: 'v1',
    plural,
    subresource: 'approval',
    methods: ['GET', 'PUT'],
    async handle(request) {
      const { core, name = '', method, body } = request
      const stored = core.objects.get(group, plural, { name }) as SigningRequest | undefined
      if (stored === undefined) throw notFound({ group, plural }, name)
      if (method === 'GET') return { status: 200, body: stored }
      return { status: 200, body: await approve(request, stored, body as SigningRequest) }
    },
  }
}

async function approve(
  { core, user, dryRun }: SpecialRequest,
  stored: SigningRequest,
  wanted: SigningRequest,
): Promise<KubeObject> {
  if (typeof wanted !== 'object' || wanted === null) throw badRequest('a CertificateSigningRequest is expected')
  const kind = core.kinds.find(group, 'v1', plural)
  if (kind === undefined) throw notFound({ group, plural }, stored.metadata.name)
  const before = stored.status?.conditions ?? []
  const decided = ['Approved', 'Denied']
  const conditions = [...(wanted.status?.conditions ?? [])].map((condition) => ({
    ...condition,
    lastUpdateTime: condition.lastUpdateTime ?? now(),
    lastTransitionTime: condition.lastTransitionTime ?? now(),
  }))
  const removed = before.some(
    ({ type }) => decided.includes(type) && !conditions.some((condition) => condition.type === type),
  )
  const types = new Set(conditions.map(({ type }) => type))
  const faulty = removed || (types.has('Approved') && types.has('Denied'))
  if (faulty) {
    throw invalid(kind, stored.metadata.name, [
      {
        reason: 'FieldValueForbidden',
        field: 'status.conditions',
        message: 'Forbidden: Approved and Denied conditions are mutually exclusive and cannot be removed',
      },
    ])
  }
  const resourceVersion = wanted.metadata.resourceVersion ?? stored.metadata.resourceVersion
  const object: SigningRequest = {
    ...structuredClone(stored),
    metadata: { ...structuredClone(stored.metadata), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status: { ...stored.status, conditions },
  }
  return core.update(kind, object, { subresource: 'approval', user, dryRun })
}

const now = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z')

/** Signs approved requests of the signers that are ours, from now on; returns the function that ends it. */
export function startSigning(core: ApiCore, authority: KeyPair): () => void {
  const kind = core.kinds.find(group, 'v1', plural)
  if (kind === undefined) throw new Error(`${group} ${plural} is not served`)
  const signOne = async (request: SigningRequest): Promise<void> => {
    const { spec } = request
    const isDone = request.status?.certificate !== undefined || isTrue(request, 'Failed')
    if (spec === undefined || isDone || isTrue(request, 'Denied') || !isTrue(request, 'Approved')) return
    if (!isOwnSigner(spec.signerName)) return
    const status = await outcome(authority, request, spec)
    await core.update(kind, { ...structuredClone(request), status } as KubeObject, { subresource: 'status' })
  }
  return core.objects.subscribe(group, plural, (change) => {
    if (change.kind === 'deleted') return
    signOne(change.object as SigningRequest).catch((error: unknown) => {
      process.emitWarning(`CertificateSigningRequest ${change.object.metadata.name} is not signed: ${String(error)}`)
    })
  })
}

async function outcome(
  authority: KeyPair,
  request: SigningRequest,
  spec: SigningRequestSpec,
): Promise<NonNullable<SigningRequest['status']>> {
  try {
    const certificate = await signRequest(authority, spec)
    return { ...request.status, certificate: Buffer.from(certificate).toString('base64') }
  } catch (error) {
    if (!(error instanceof SigningError)) throw error
    const failed: Condition = {
      type: 'Failed',
      status: 'True',
      reason: 'SignerValidationFailure',
      message: error.message,
      lastUpdateTime: now(),
      lastTransitionTime: now(),
    }
    return { ...request.status, conditions: [...(request.status?.conditions ?? []), failed] }
  }
}
