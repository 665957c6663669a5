// Delta xDS client. In: where the control plane is and which types are wanted; out: updates to judge, and when all is known.
// It loads no server code: data-plane processes enter here.
export type { DeltaUpdate, DeltaVerdict } from '../types.ts'
export { createDeltaClient } from './client.ts'
export type { DeltaClient, DeltaClientOptions, DeltaClientTimes } from './options.ts'
