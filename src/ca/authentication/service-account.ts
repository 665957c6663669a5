// The service account a token belongs to, as its subject names it and as a TokenReview tells.
import { AuthenticationError } from './authenticator.ts'

export interface ServiceAccountCaller {
  readonly namespace: string
  readonly serviceAccount: string
  readonly podName?: string
  readonly podUid?: string
}

/** `status` of a TokenReview. */
export interface TokenReviewStatus {
  readonly authenticated?: boolean
  readonly error?: string
  readonly audiences?: readonly string[]
  readonly user?: {
    readonly username?: string
    readonly groups?: readonly string[]
    readonly extra?: Readonly<Record<string, readonly string[]>>
  }
}

/** Parses `system:serviceaccount:<namespace>:<name>`; undefined for anything else. */
export function serviceAccountOfSubject(subject: string): ServiceAccountCaller | undefined {
  const [, namespace, serviceAccount] = /^system:serviceaccount:([^:/\s]+):([^:/\s]+)$/.exec(subject) ?? []
  if (namespace === undefined || serviceAccount === undefined) return undefined
  return { namespace, serviceAccount }
}

/** Throws an AuthenticationError when the review did not accept the token as a service account's. */
export function serviceAccountOfReview({ authenticated, error, user }: TokenReviewStatus): ServiceAccountCaller {
  if (error !== undefined && error !== '') {
    throw new AuthenticationError(`the service account authentication returns an error: ${error}`)
  }
  if (authenticated !== true) throw new AuthenticationError('the token is not authenticated')
  if (user?.groups?.includes('system:serviceaccounts') !== true) {
    throw new AuthenticationError('the token is not a service account')
  }
  const account = serviceAccountOfSubject(user.username ?? '')
  if (account === undefined) throw new AuthenticationError('invalid username field in the token review result')
  const podName = user.extra?.['authentication.kubernetes.io/pod-name']?.[0]
  const podUid = user.extra?.['authentication.kubernetes.io/pod-uid']?.[0]
  return {
    ...account,
    ...(podName === undefined ? {} : { podName }),
    ...(podUid === undefined ? {} : { podUid }),
  }
}
