// The pods of the node, as the node agent tells of them: which are to be served, and whether they are.
export { createPods, type PodChange, type PodState, type Pods, type ServedPod, ZdsProtocolError } from './pods.ts'
export { followNodeAgent } from './zds-client.ts'
