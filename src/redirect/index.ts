// Traffic redirection: packet-filter programs as data (in: settings and a pod's annotations), their text, and their application in a
// network namespace (out: rules in force). Nothing here knows Kubernetes.
export { type AmbientSettings, ambientDefaults, hostProgram, podProgram } from './ambient.ts'
export * from './constants.ts'
export { RedirectionError, type RunTool, runTool } from './exec.ts'
export { type OverrideWarning, type PodOverrides, parseBoolean, podOverrides } from './overrides.ts'
export type { ProbeSetEntry } from './probe-set.ts'
export type * from './program.ts'
export { createRedirector, type Redirector, selectBackend } from './redirector.ts'
export { iptablesReplaceInput, iptablesRestoreInput, nftInput, nftRemovalInput } from './render.ts'
