// Several authorizers as one: the first that allows decides; when none does, each one's reason is told.
import type { Authorizer } from '../types.ts'

export function anyOf(authorizers: readonly Authorizer[]): Authorizer {
  return {
    async authorize(attributes) {
      const reasons: string[] = []
      for (const authorizer of authorizers) {
        const { allowed, reason = '' } = await authorizer.authorize(attributes)
        if (allowed) return reason === '' ? { allowed } : { allowed, reason }
        if (reason !== '') reasons.push(reason)
      }
      return { allowed: false, reason: reasons.join(', ') }
    },
  }
}
