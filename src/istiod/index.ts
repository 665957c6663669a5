// The control plane process: reads the cluster, serves xDS and certificates, writes what the mesh needs back.
export { mayDebug, syncOf } from './debug.ts'
export { type DiscoveryProcess, runDiscovery } from './discovery.ts'
export { type DiscoveryFlags, type DiscoverySettings, readSettings, SettingError } from './settings.ts'
