// Authentication and authorization of the embedded API as one extension.
import type { ApiCore, ApiExtension, ObjectReader, PathHandler } from '../types.ts'
import { createCertificateAuthenticator, createTokenAuthenticator } from './authenticators.ts'
import { createTrustBundleAdmission } from './cluster-trust-bundles.ts'
import { createEscalationCheck } from './escalation.ts'
import { createNodeAuthorizer, createNodeRestriction, followNodePods, type NodePods } from './node/index.ts'
import type { Pki } from './pki.ts'
import { createRbacAuthorizer, createRulesResolver } from './rbac.ts'
import { createReviewHandlers } from './reviews.ts'
import { startRoles } from './role-controller.ts'
import { createApprovalHandler, createSigningRequestAdmission, startSigning } from './signing-requests.ts'
import { createTokenRequestHandler } from './token-request.ts'
import { startTokenSecrets } from './token-secrets.ts'
import { createTokenAuthority, type TokenAuthority } from './tokens.ts'
import { anyOf } from './union.ts'

export { adminKubeconfig } from './kubeconfig.ts'
export { loadPki, type Pki, type PkiOptions } from './pki.ts'

export interface AuthenticationOptions {
  readonly pki: Pki
  /** `iss` and default audience of service account tokens. */
  readonly issuer?: string
  /** Where clients fetch the keys: `https://<host:port>/openid/v1/jwks` is told by OIDC discovery. */
  readonly externalUrl: string
}

/** Service account tokens, client certificates, the rights of nodes, RBAC, reviews and certificate signing. */
export function createAuthExtension(options: AuthenticationOptions): ApiExtension {
  const issuer = options.issuer ?? 'https://kubernetes.default.svc.cluster.local'
  const tokens = createTokenAuthority({ key: options.pki.serviceAccountKey, issuer, apiAudiences: [issuer] })
  let started: ApiCore | undefined
  let nodePods: NodePods | undefined
  const objects = (): ObjectReader => {
    if (started === undefined) throw new Error('the API server has not started')
    return started.objects
  }
  const podsOfNodes = (): NodePods => {
    nodePods ??= followNodePods(objects())
    return nodePods
  }
  const rulesFor = createRulesResolver(objects)
  const authorizer = anyOf([createNodeAuthorizer(podsOfNodes, objects), createRbacAuthorizer(rulesFor)])
  const stops: (() => void)[] = []

  return {
    name: 'auth',
    authenticators: [createTokenAuthenticator(tokens, objects), createCertificateAuthenticator()],
    authorizers: [authorizer],
    admission: [
      createNodeRestriction(objects),
      createSigningRequestAdmission(authorizer),
      createTrustBundleAdmission(authorizer),
      createEscalationCheck(rulesFor, authorizer, objects),
    ],
    special: [
      createTokenRequestHandler(tokens, authorizer),
      ...createReviewHandlers(tokens, authorizer, rulesFor),
      createApprovalHandler(),
    ],
    paths: oidcPaths(tokens, options.externalUrl),
    async start(core) {
      started = core
      stops.push(await startRoles(core), startSigning(core, options.pki.authority))
      stops.push(startTokenSecrets(core, tokens, options.pki.authority.certificate))
    },
    async close() {
      for (const stop of stops.splice(0)) stop()
      nodePods?.[Symbol.dispose]()
    },
  }
}

function oidcPaths(tokens: TokenAuthority, externalUrl: string): readonly PathHandler[] {
  const jwksPath = '/openid/v1/jwks'
  return [
    {
      path: jwksPath,
      async handle() {
        return { status: 200, contentType: 'application/jwk-set+json', body: JSON.stringify(await tokens.jwks()) }
      },
    },
    {
      path: '/.well-known/openid-configuration',
      handle() {
        const document = {
          issuer: tokens.issuer,
          jwks_uri: new URL(jwksPath, externalUrl).href,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        }
        return { status: 200, contentType: 'application/json', body: JSON.stringify(document) }
      },
    },
  ]
}
