// Callers known by a service account token, which the cluster it comes from reviews.
import { buildSpiffe } from '../client/index.ts'
import { AuthenticationError, type Authenticator, bearerToken } from './authenticator.ts'
import { serviceAccountOfReview, type TokenReviewStatus } from './service-account.ts'

/** Creates a TokenReview in one cluster. */
export type ReviewToken = (token: string, audiences: readonly string[]) => Promise<TokenReviewStatus>

/** The clusters whose tokens are accepted. */
export interface TokenClusters {
  readonly localId: string
  /** Other names of clusters, by alias. */
  readonly aliases: ReadonlyMap<string, string>
  remoteIds(): readonly string[]
  reviewerOf(clusterId: string): ReviewToken | undefined
}

export interface KubernetesTokenOptions {
  readonly clusters: TokenClusters
  /** At least one: without audiences any token of the cluster would do. */
  readonly audiences: readonly string[]
  readonly trustDomain: () => string
}

export function createKubernetesTokenAuthenticator(options: KubernetesTokenOptions): Authenticator {
  const { clusters, audiences, trustDomain } = options
  if (audiences.length === 0) throw new Error('token audiences: expected at least one, such as istio-ca')

  return {
    name: 'KubeJWTAuthenticator',
    async authenticate(request) {
      const token = extractToken(() => bearerToken(request))
      const claimed = request.header('clusterid')[0] ?? ''
      const { clusterId, review } = reviewerFor(clusters, claimed)
      try {
        const status = await review(token, audiences)
        const account = serviceAccountOfReview(status)
        // A server that does not know audiences accepts tokens made for others.
        if (!audiences.some((audience) => status.audiences?.includes(audience))) {
          throw new AuthenticationError('the token is not for any of the expected audiences')
        }
        const identity = buildSpiffe({ trustDomain: trustDomain(), ...account })
        return { identities: [identity], kubernetes: account, source: 'jwt' }
      } catch (cause) {
        const why = withoutToken(cause instanceof Error ? cause.message : String(cause), token)
        throw new AuthenticationError(`failed to validate the JWT from cluster "${clusterId}": ${why}`, { cause })
      }
    },
  }
}

/** No token is shorter: a word of the message is none. */
const shortestToken = 16

/** An API server may say again what it was sent. */
function withoutToken(message: string, token: string): string {
  return token.length < shortestToken ? message : message.replaceAll(token, '…')
}

function extractToken(extract: () => string): string {
  try {
    return extract()
  } catch (cause) {
    throw new AuthenticationError(`target JWT extraction error: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

function reviewerFor(
  clusters: TokenClusters,
  claimed: string,
): { readonly clusterId: string; readonly review: ReviewToken } {
  const clusterId = claimed === '' ? clusters.localId : (clusters.aliases.get(claimed) ?? claimed)
  const review = clusters.reviewerOf(clusterId)
  if (review !== undefined) return { clusterId, review }
  const remotes = clusters.remoteIds().join(' ')
  throw new AuthenticationError(
    `client claims to be in cluster "${claimed}", but we only know about local cluster "${clusters.localId}" and remote clusters [${remotes}]`,
  )
}
