// Which node a user is: `system:node:<name>` of the group `system:nodes`.
import type { AuthenticatedUser } from '../../types.ts'

const prefix = 'system:node:'
const group = 'system:nodes'

/** The node's name, empty when the user says that it is a node but not which; undefined when it is no node. */
export function nodeOfUser({ name, groups }: AuthenticatedUser): string | undefined {
  return name.startsWith(prefix) && groups.includes(group) ? name.slice(prefix.length) : undefined
}
