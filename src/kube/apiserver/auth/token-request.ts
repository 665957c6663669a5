// Issues service account tokens: POST serviceaccounts/<name>/token.
import { badRequest, conflict, invalid, notFound } from '../errors.ts'
import type { Authorizer, Cause, SpecialHandler, SpecialRequest } from '../types.ts'
import { refuseForeignToken, type WantedToken } from './node/index.ts'
import type { BoundObject, TokenAuthority, TokenClaims } from './tokens.ts'

interface TokenRequest {
  readonly spec?: {
    readonly audiences?: readonly string[]
    readonly expirationSeconds?: number
    readonly boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string } | null
  }
}

const serviceAccounts = { group: '', plural: 'serviceaccounts' }
const tokenRequests = { group: 'authentication.k8s.io', kind: 'TokenRequest' }
const plurals = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' } as const

export function createTokenRequestHandler(tokens: TokenAuthority, authorizer: Authorizer): SpecialHandler {
  return {
    group: '',
    version: 'v1',
    plural: 'serviceaccounts',
    subresource: 'token',
    methods: ['POST'],
    async handle(request) {
      const claims = claimsOf(request, tokens)
      await refuseForeignToken(wantedToken(request), request.core.objects, authorizer)
      const { token, expires } = await tokens.issue(claims)
      const { spec = {} } = request.body as TokenRequest
      return {
        status: 201,
        body: {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          metadata: { name: request.name, namespace: request.namespace },
          spec: {
            ...spec,
            audiences: claims.audiences,
            expirationSeconds: claims.expirationSeconds,
            boundObjectRef: spec.boundObjectRef ?? null,
          },
          status: { token, expirationTimestamp: expires.toISOString().replace(/\.\d+Z$/, 'Z') },
        },
      }
    },
  }
}

function claimsOf({ core, namespace = '', name = '', body }: SpecialRequest, tokens: TokenAuthority): TokenClaims {
  if (typeof body !== 'object' || body === null) throw badRequest('a TokenRequest is expected')
  const account = core.objects.get('', 'serviceaccounts', { namespace, name })
  if (account?.metadata.uid === undefined) throw notFound(serviceAccounts, name)
  const { spec = {} } = body as TokenRequest
  const causes = faultsOf(spec)
  if (causes.length > 0) throw invalid(tokenRequests, name, causes)
  const audiences = spec.audiences ?? []
  const claims: TokenClaims = {
    namespace,
    account: { name, uid: account.metadata.uid },
    audiences: audiences.length > 0 ? audiences : tokens.apiAudiences,
    expirationSeconds: spec.expirationSeconds ?? 3600,
  }
  const reference = spec.boundObjectRef ?? undefined
  return reference === undefined ? claims : { ...claims, ...boundClaims(core, namespace, name, reference) }
}

function wantedToken({ user, namespace = '', name = '', body }: SpecialRequest): WantedToken {
  const { audiences = [], boundObjectRef } = (body as TokenRequest).spec ?? {}
  return { user, namespace, account: name, audiences, bound: boundObjectRef ?? undefined }
}

function faultsOf(spec: NonNullable<TokenRequest['spec']>): Cause[] {
  const seconds = spec.expirationSeconds
  const field = 'spec.expirationSeconds'
  if (seconds === undefined) return []
  if (!Number.isInteger(seconds))
    return [{ reason: 'FieldValueInvalid', field, message: 'Invalid value: must be an integer' }]
  if (seconds < 600) {
    const message = `Invalid value: ${seconds}: may not specify a duration less than 10 minutes`
    return [{ reason: 'FieldValueInvalid', field, message }]
  }
  if (seconds > 2 ** 32) {
    const message = `Invalid value: ${seconds}: may not specify a duration larger than 2^32 seconds`
    return [{ reason: 'FieldValueTooLong', field, message }]
  }
  return []
}

function boundClaims(
  core: SpecialRequest['core'],
  namespace: string,
  account: string,
  reference: { kind?: string; name?: string; uid?: string },
): Pick<TokenClaims, 'bound' | 'node'> {
  const { kind = '', name = '' } = reference
  if (kind !== 'Pod' && kind !== 'Secret' && kind !== 'Node') {
    throw badRequest(`cannot bind token for serviceaccount "${account}" to object of kind "${kind}"`)
  }
  const plural = plurals[kind]
  const object = core.objects.get('', plural, kind === 'Node' ? { name } : { namespace, name })
  if (object?.metadata.uid === undefined) throw notFound({ group: '', plural }, name)
  if (reference.uid !== undefined && reference.uid !== '' && reference.uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${reference.uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group: '', plural }, name, why)
  }
  const bound: BoundObject = { kind, name, uid: object.metadata.uid }
  if (kind !== 'Pod') return { bound }
  const { serviceAccountName, nodeName } = (object.spec ?? {}) as { serviceAccountName?: string; nodeName?: string }
  if (serviceAccountName !== account) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    )
  }
  if (nodeName === undefined || nodeName === '') return { bound }
  const node = core.objects.get('', 'nodes', { name: nodeName })
  return {
    bound,
    node: { name: nodeName, ...(node?.metadata.uid === undefined ? {} : { uid: node.metadata.uid }) },
  }
}
