// Nodes as users of the API: what they may read and write.
export { createNodeAuthorizer } from './authorizer.ts'
export { nodeOfUser } from './identity.ts'
export { followNodePods, type NodePods } from './node-pods.ts'
export { createNodeRestriction } from './restriction.ts'
export { nodeRules } from './rules.ts'
export { refuseForeignToken, type WantedToken } from './token.ts'
