// Answers TokenReview and the reviews of access: who is this, and what may he do.
import { badRequest } from '../errors.ts'
import { equalFields } from '../selectors.ts'
import type {
  AuthenticatedUser,
  AuthorizationAttributes,
  Authorizer,
  SpecialHandler,
  SpecialRequest,
} from '../types.ts'
import { nodeOfUser } from './node/index.ts'
import type { RulesResolver } from './rbac.ts'
import { type TokenAuthority, TokenError } from './tokens.ts'

type Fields = Record<string, unknown>

function handler(
  group: string,
  kind: string,
  answer: (request: SpecialRequest, spec: Fields) => Promise<Fields>,
): SpecialHandler {
  const apiVersion = `${group}/v1`
  return {
    group,
    version: 'v1',
    plural: `${kind.toLowerCase()}s`,
    methods: ['POST'],
    async handle(request) {
      if (typeof request.body !== 'object' || request.body === null) throw badRequest(`a ${kind} is expected`)
      const { spec, metadata } = request.body as { spec?: Fields; metadata?: Fields }
      const status = await answer(request, spec ?? {})
      return {
        status: 201,
        body: { apiVersion, kind, metadata: { ...metadata, creationTimestamp: null }, spec: spec ?? {}, status },
      }
    },
  }
}

/** All handlers of authentication.k8s.io and authorization.k8s.io. */
export function createReviewHandlers(
  tokens: TokenAuthority,
  authorizer: Authorizer,
  rulesOf: RulesResolver,
): readonly SpecialHandler[] {
  const decide = async (attributes: AuthorizationAttributes): Promise<Fields> => {
    const { allowed, reason } = await authorizer.authorize(attributes)
    return { allowed, ...(reason === undefined || reason === '' ? {} : { reason }) }
  }
  return [
    handler('authentication.k8s.io', 'TokenReview', (request, spec) => reviewToken(tokens, request, spec)),
    handler('authentication.k8s.io', 'SelfSubjectReview', async ({ user }) => ({ userInfo: userInfo(user) })),
    handler('authorization.k8s.io', 'SubjectAccessReview', (_, spec) => decide(attributesOf(spec, subjectOf(spec)))),
    handler('authorization.k8s.io', 'LocalSubjectAccessReview', async ({ namespace }, spec) => {
      const attributes = attributesOf(spec, subjectOf(spec))
      if (attributes.kind !== 'resource' || attributes.namespace !== namespace) {
        throw badRequest(`spec.resourceAttributes.namespace must match namespace: ${namespace}`)
      }
      return decide(attributes)
    }),
    handler('authorization.k8s.io', 'SelfSubjectAccessReview', ({ user }, spec) => decide(attributesOf(spec, user))),
    handler('authorization.k8s.io', 'SelfSubjectRulesReview', async ({ user }, spec) => {
      const namespace = text(spec.namespace)
      if (namespace === '') throw badRequest('no namespace on request')
      const rules = rulesOf(user, namespace)
      const isNode = nodeOfUser(user) !== undefined
      return {
        incomplete: isNode,
        ...(isNode
          ? { evaluationError: 'what nodes may do depends on their pods: only rules of roles are listed' }
          : {}),
        resourceRules: rules.filter((rule) => rule.resources !== undefined),
        nonResourceRules: rules.filter((rule) => rule.nonResourceURLs !== undefined),
      }
    }),
  ]
}

async function reviewToken(tokens: TokenAuthority, { core }: SpecialRequest, spec: Fields): Promise<Fields> {
  const token = text(spec.token)
  if (token === '') throw badRequest('token is required for TokenReview in authentication')
  const asked = Array.isArray(spec.audiences) ? spec.audiences.map(String) : []
  try {
    const { user, audiences } = await tokens.verify(token, asked.length > 0 ? asked : tokens.apiAudiences, core.objects)
    return { authenticated: true, user: userInfo(user), audiences }
  } catch (error) {
    if (error instanceof TokenError) return { authenticated: false, user: {}, error: error.message }
    throw error
  }
}

function userInfo(user: AuthenticatedUser): Fields {
  return {
    username: user.name,
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(user.extra === undefined || Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
  }
}

function subjectOf(spec: Fields): AuthenticatedUser {
  const groups = Array.isArray(spec.groups) ? spec.groups.map(String) : []
  const name = text(spec.user)
  if (name === '' && groups.length === 0) throw badRequest('at least one of user or group must be specified')
  return { name, groups, ...(spec.uid === undefined ? {} : { uid: text(spec.uid) }) }
}

function attributesOf(spec: Fields, user: AuthenticatedUser): AuthorizationAttributes {
  const resource = spec.resourceAttributes as Fields | undefined | null
  const path = spec.nonResourceAttributes as Fields | undefined | null
  if ((resource == null) === (path == null)) {
    throw badRequest('exactly one of nonResourceAttributes or resourceAttributes must be specified')
  }
  if (path != null) return { kind: 'path', user, verb: text(path.verb), path: text(path.path) }
  const { namespace, subresource, name } = {
    namespace: text(resource?.namespace),
    subresource: text(resource?.subresource),
    name: text(resource?.name),
  }
  return {
    kind: 'resource',
    user,
    verb: text(resource?.verb),
    group: text(resource?.group),
    version: text(resource?.version),
    resource: text(resource?.resource),
    ...(subresource === '' ? {} : { subresource }),
    ...(namespace === '' ? {} : { namespace }),
    ...(name === '' ? {} : { name }),
    ...fieldSelectorOf(resource),
  }
}

interface FieldRequirement {
  readonly key?: unknown
  readonly operator?: unknown
  readonly values?: readonly unknown[]
}

/** As text, or as requirements: those with one value that the field must have count. */
function fieldSelectorOf(resource: Fields | undefined | null): { fieldSelector?: Readonly<Record<string, string>> } {
  const selector = resource?.fieldSelector as { rawSelector?: unknown; requirements?: unknown } | undefined | null
  if (selector == null) return {}
  if (typeof selector.rawSelector === 'string') return { fieldSelector: equalFields(selector.rawSelector) }
  const requirements = Array.isArray(selector.requirements) ? (selector.requirements as FieldRequirement[]) : []
  const single = requirements.filter(({ operator, values }) => operator === 'In' && values?.length === 1)
  return { fieldSelector: Object.fromEntries(single.map(({ key, values = [] }) => [text(key), text(values[0])])) }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
