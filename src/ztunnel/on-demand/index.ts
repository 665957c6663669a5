// A mesh known in parts: addresses are asked of the control plane when a decision needs them.
export { createOnDemandAddresses, type OnDemandAddresses, OnDemandError, type OnDemandOptions } from './addresses.ts'
export { type DecideOptions, decideOnDemand } from './decide.ts'
export { type RecordingView, recordMisses } from './recording-view.ts'
