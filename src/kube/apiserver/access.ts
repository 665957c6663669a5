// Who makes a request, and whether they may: authentication, impersonation, authorization.
import type { TLSSocket } from 'node:tls'
import { anyOf } from './auth/union.ts'
import { ApiError, badRequest, forbidden, unauthorized } from './errors.ts'
import type { HttpRequest } from './http/exchange.ts'
import type { RequestTarget } from './path.ts'
import { equalFields } from './selectors.ts'
import type { AuthenticatedUser, Authenticator, AuthorizationAttributes, Authorizer, Credentials } from './types.ts'

const anonymous: AuthenticatedUser = { name: 'system:anonymous', groups: ['system:unauthenticated'] }
const authenticatedGroup = 'system:authenticated'

export interface Access {
  /** Throws ApiError 401 for wrong credentials, 403 for an impersonation that is not allowed. */
  identify(request: HttpRequest): Promise<AuthenticatedUser>
  /** Throws ApiError 403. */
  require(attributes: AuthorizationAttributes): Promise<void>
}

export function createAccess(authenticators: readonly Authenticator[], authorizers: readonly Authorizer[]): Access {
  async function authenticate(request: HttpRequest): Promise<AuthenticatedUser> {
    const credentials = credentialsOf(request)
    for (const authenticator of authenticators) {
      const user = await authenticator.authenticate(credentials)
      if (user === undefined) continue
      return user.groups.includes(authenticatedGroup) ? user : { ...user, groups: [...user.groups, authenticatedGroup] }
    }
    if (request.headers.authorization !== undefined) throw unauthorized()
    return anonymous
  }

  const authorizer = anyOf(authorizers)

  async function requireAllowed(attributes: AuthorizationAttributes): Promise<void> {
    if (attributes.user.groups.includes('system:masters')) return
    const { allowed, reason = '' } = await authorizer.authorize(attributes)
    if (!allowed) throw refusal(attributes, reason)
  }

  return {
    async identify(request) {
      const user = await authenticate(request)
      const wanted = impersonated(request)
      if (wanted === undefined) return user
      await checkImpersonation(user, wanted, requireAllowed)
      return wanted
    },
    require: requireAllowed,
  }
}

function credentialsOf(request: HttpRequest): Credentials {
  const socket = ('stream' in request ? request.stream.session?.socket : request.socket) as TLSSocket | undefined
  const certificate = socket?.getPeerCertificate?.()
  const isPresented = certificate !== undefined && certificate !== null && Object.keys(certificate).length > 0
  if (!isPresented) return { headers: request.headers }
  // A certificate that does not verify is a wrong credential, not an absent one.
  if (socket?.authorized !== true) throw unauthorized()
  return { headers: request.headers, certificate }
}

function impersonated(request: HttpRequest): AuthenticatedUser | undefined {
  const { headers } = request
  const name = single(headers['impersonate-user'])
  const groups = listed(headers['impersonate-group'])
  const uid = single(headers['impersonate-uid'])
  const extra = Object.entries(headers)
    .filter(([key]) => key.startsWith('impersonate-extra-'))
    .map(([key, value]) => [decodeURIComponent(key.slice('impersonate-extra-'.length)), listed(value)] as const)
  if (name === undefined) {
    if (groups.length > 0 || uid !== undefined || extra.length > 0) {
      throw badRequest('requested impersonation of groups, a uid or extra values without impersonating a user')
    }
    return undefined
  }
  const account = /^system:serviceaccount:([^:]+):[^:]+$/.exec(name)
  const implied =
    groups.length > 0 || account === null ? [] : ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`]
  const all = [...groups, ...implied]
  if (name !== anonymous.name && !all.includes(authenticatedGroup)) all.push(authenticatedGroup)
  return {
    name,
    groups: name === anonymous.name ? [...all, 'system:unauthenticated'] : all,
    ...(uid === undefined ? {} : { uid }),
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  }
}

async function checkImpersonation(
  user: AuthenticatedUser,
  wanted: AuthenticatedUser,
  requireAllowed: (attributes: AuthorizationAttributes) => Promise<void>,
): Promise<void> {
  const check = (resource: string, name: string, group = '', subresource?: string, namespace?: string) =>
    requireAllowed({
      kind: 'resource',
      user,
      verb: 'impersonate',
      group,
      version: 'v1',
      resource,
      name,
      ...(subresource === undefined ? {} : { subresource }),
      ...(namespace === undefined ? {} : { namespace }),
    })
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(wanted.name)
  if (account !== null) await check('serviceaccounts', account[2] ?? '', '', undefined, account[1])
  else await check('users', wanted.name)
  const implied = [authenticatedGroup, 'system:unauthenticated']
  if (account !== null) implied.push('system:serviceaccounts', `system:serviceaccounts:${account[1]}`)
  for (const group of wanted.groups) if (!implied.includes(group)) await check('groups', group)
  if (wanted.uid !== undefined) await check('uids', wanted.uid, 'authentication.k8s.io')
  for (const [key, values] of Object.entries(wanted.extra ?? {})) {
    for (const value of values) await check('userextras', value, 'authentication.k8s.io', key)
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

function listed(value: string | string[] | undefined): string[] {
  // Node joins repeated headers that it does not know with a comma.
  const texts = value === undefined ? [] : Array.isArray(value) ? value : value.split(',')
  return texts.map((text) => text.trim()).filter((text) => text !== '')
}

function refusal(attributes: AuthorizationAttributes, reason: string): ApiError {
  const { user, verb } = attributes
  const why = reason === '' ? '' : `: ${reason}`
  if (attributes.kind === 'path') {
    return new ApiError(
      403,
      'Forbidden',
      `forbidden: User "${user.name}" cannot ${verb} path "${attributes.path}"${why}`,
      {},
    )
  }
  const { group, resource, subresource, namespace, name = '' } = attributes
  const what = subresource === undefined ? resource : `${resource}/${subresource}`
  const where = namespace === undefined || namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  return forbidden(
    { group, plural: resource },
    name,
    `User "${user.name}" cannot ${verb} resource "${what}" in API group "${group}" ${where}${why}`,
  )
}

/** What a request to a target is in the terms of authorization. */
export function attributesOf(
  user: AuthenticatedUser,
  verb: string,
  target: RequestTarget,
  query: URLSearchParams,
): AuthorizationAttributes {
  if (target.kind === 'path') return { kind: 'path', user, verb, path: target.path }
  const { group, version, plural, subresource } = target
  const fieldSelector = selectsObjects(verb) ? equalFields(query.get('fieldSelector') ?? '') : undefined
  const name = target.name ?? fieldSelector?.['metadata.name']
  // A namespace is itself in its namespace: who may get namespaces in `a` may get the namespace `a`.
  const namespace = target.namespace ?? (group === '' && plural === 'namespaces' ? target.name : undefined)
  return {
    kind: 'resource',
    user,
    verb,
    group,
    version,
    resource: plural,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  }
}

function selectsObjects(verb: string): boolean {
  return verb === 'list' || verb === 'watch' || verb === 'deletecollection'
}
