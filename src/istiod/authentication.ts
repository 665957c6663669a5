// Who may talk to the control plane: holders of a certificate of this mesh, and service accounts of the cluster by their token.
import { type KubeObject, resources } from '../api/index.ts'
import {
  type Authenticator,
  createClientCertificateAuthenticator,
  createKubernetesTokenAuthenticator,
  createOidcAuthenticator,
  parseJwtRule,
  type TokenReviewStatus,
} from '../ca/index.ts'
import type { KubeClient } from '../kube/index.ts'

export interface AuthenticationOptions {
  readonly client: KubeClient
  readonly clusterId: string
  readonly audiences: readonly string[]
  readonly trustDomain: () => string
  /** The text of JWT_RULE; empty for none. */
  readonly jwtRule: string
}

interface TokenReview extends KubeObject<{ token: string; audiences: readonly string[] }, TokenReviewStatus> {}

/** In the order in which they are tried. Throws for a rule that cannot be read. */
export function createAuthenticators(options: AuthenticationOptions): readonly Authenticator[] {
  const { client, clusterId, audiences, trustDomain } = options
  const review = async (token: string, wanted: readonly string[]): Promise<TokenReviewStatus> => {
    const reviewed = await client.create<TokenReview>(resources.tokenReviews, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      metadata: { name: '' },
      spec: { token, audiences: wanted },
    })
    return reviewed.status ?? {}
  }
  const oidc =
    options.jwtRule === '' ? [] : [createOidcAuthenticator({ rule: parseJwtRule(options.jwtRule), trustDomain })]
  return [
    createClientCertificateAuthenticator(),
    ...oidc,
    createKubernetesTokenAuthenticator({
      clusters: {
        localId: clusterId,
        aliases: new Map(),
        remoteIds: () => [],
        reviewerOf: (id) => (id === clusterId ? review : undefined),
      },
      audiences,
      trustDomain,
    }),
  ]
}
