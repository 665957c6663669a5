// The control plane process: reads the cluster, serves xDS and certificates, writes what the mesh needs back.
export { type DiscoveryProcess, runDiscovery } from './discovery.ts'
export { type DiscoveryFlags, type DiscoverySettings, readSettings, SettingError } from './settings.ts'
