// Who may talk to the control plane: holders of a certificate of this mesh, and service accounts of its clusters by their token.
import { type KubeObject, resources } from '../api/index.ts'
import {
  type Authenticator,
  createClientCertificateAuthenticator,
  createKubernetesTokenAuthenticator,
  createOidcAuthenticator,
  createXfccAuthenticator,
  type ReviewToken,
  type TokenReviewStatus,
} from '../ca/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { AuthenticationSettings } from './authentication-settings.ts'
import type { RemoteClusters } from './remote-clusters.ts'

type ReviewingClient = Pick<KubeClient, 'create'>

export interface AuthenticationOptions extends AuthenticationSettings {
  readonly client: ReviewingClient
  readonly clusterId: string
  readonly clusterAliases: ReadonlyMap<string, string>
  readonly remoteClusters: Pick<RemoteClusters, 'ids'> & {
    clientOf(id: string): ReviewingClient | undefined
  }
  readonly trustDomain: () => string
}

interface TokenReview extends KubeObject<{ token: string; audiences: readonly string[] }, TokenReviewStatus> {}

/** In the order in which they are tried. */
export function createAuthenticators(options: AuthenticationOptions): readonly Authenticator[] {
  const { client, clusterId, remoteClusters, tokenAudiences, tokenRules, trustDomain, trustedGatewayCidrs } = options
  const reviewerOf = (id: string): ReviewToken | undefined => {
    const of = id === clusterId ? client : remoteClusters.clientOf(id)
    return of === undefined ? undefined : (token, wanted) => review(of, token, wanted)
  }
  const xfcc =
    trustedGatewayCidrs.length === 0
      ? []
      : [createXfccAuthenticator({ trustedCidrs: trustedGatewayCidrs, trustsLoopback: false })]
  return [
    createClientCertificateAuthenticator(),
    ...tokenRules.map((rule) => createOidcAuthenticator({ rule, trustDomain })),
    createKubernetesTokenAuthenticator({
      clusters: {
        localId: clusterId,
        aliases: options.clusterAliases,
        remoteIds: () => remoteClusters.ids(),
        reviewerOf,
      },
      audiences: tokenAudiences,
      trustDomain,
    }),
    ...xfcc,
  ]
}

async function review(
  client: ReviewingClient,
  token: string,
  audiences: readonly string[],
): Promise<TokenReviewStatus> {
  const reviewed = await client.create<TokenReview>(resources.tokenReviews, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, audiences },
  })
  return reviewed.status ?? {}
}
