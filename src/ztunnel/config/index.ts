// The node proxy's configuration: environment and mesh file in, one typed value out.
export { dumpConfig } from './dump.ts'
export { ConfigError } from './errors.ts'
export { type ConfigInputs, loadConfig, processInputs } from './load.ts'
export type { ControlPlaneEndpoint, RootSource, TokenSource, ZtunnelConfig } from './types.ts'
