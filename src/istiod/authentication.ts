// Who may talk to the control plane: holders of a certificate of this mesh, and service accounts of its clusters by their token.
import { type KubeObject, resources } from '../api/index.ts'
import {
  type Authenticator,
  createClientCertificateAuthenticator,
  createKubernetesTokenAuthenticator,
  createOidcAuthenticator,
  createXfccAuthenticator,
  parseJwtRule,
  type ReviewToken,
  type TokenReviewStatus,
} from '../ca/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { RemoteClusters } from './remote-clusters.ts'
import type { DiscoverySettings } from './settings.ts'

export interface AuthenticationOptions {
  readonly client: KubeClient
  readonly clusterId: string
  readonly clusterAliases: ReadonlyMap<string, string>
  readonly remoteClusters: Pick<RemoteClusters, 'ids' | 'clientOf'>
  readonly audiences: readonly string[]
  readonly trustDomain: () => string
  /** The text of JWT_RULE; empty for none. */
  readonly jwtRule: string
  /** A further issuer of tokens. */
  readonly tokenIssuer: DiscoverySettings['tokenIssuer']
  /** Gateways that vouch for their clients by a header; empty for none. */
  readonly trustedGatewayCidrs: readonly string[]
}

interface TokenReview extends KubeObject<{ token: string; audiences: readonly string[] }, TokenReviewStatus> {}

/** In the order in which they are tried. Throws for a rule that cannot be read. */
export function createAuthenticators(options: AuthenticationOptions): readonly Authenticator[] {
  const { client, clusterId, remoteClusters, audiences, trustDomain, trustedGatewayCidrs } = options
  const reviewerOf = (id: string): ReviewToken | undefined => {
    const of = id === clusterId ? client : remoteClusters.clientOf(id)
    return of === undefined ? undefined : (token, wanted) => review(of, token, wanted)
  }
  const { jwtRule, tokenIssuer } = options
  const rules = [
    ...(jwtRule === '' ? [] : [parseJwtRule(jwtRule)]),
    ...(tokenIssuer === undefined ? [] : [{ issuer: tokenIssuer.issuer, audiences: [tokenIssuer.audience] }]),
  ]
  const oidc = rules.map((rule) => createOidcAuthenticator({ rule, trustDomain }))
  const xfcc =
    trustedGatewayCidrs.length === 0
      ? []
      : [createXfccAuthenticator({ trustedCidrs: trustedGatewayCidrs, trustsLoopback: false })]
  return [
    createClientCertificateAuthenticator(),
    ...oidc,
    createKubernetesTokenAuthenticator({
      clusters: {
        localId: clusterId,
        aliases: options.clusterAliases,
        remoteIds: () => remoteClusters.ids(),
        reviewerOf,
      },
      audiences,
      trustDomain,
    }),
    ...xfcc,
  ]
}

async function review(client: KubeClient, token: string, audiences: readonly string[]): Promise<TokenReviewStatus> {
  const reviewed = await client.create<TokenReview>(resources.tokenReviews, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, audiences },
  })
  return reviewed.status ?? {}
}
