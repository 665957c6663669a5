// The control plane process: reads the cluster, serves xDS and certificates, writes what the mesh needs back.
export { debugPages } from './debug.ts'
export { mayDebug } from './debug-access.ts'
export { type DiscoveryPorts, type DiscoveryProcess, runDiscovery } from './discovery.ts'
export { admitControlPlane, exportedTypes } from './exported-types.ts'
export { tellIneffective } from './ineffective-variables.ts'
export { type DiscoveryFlags, type DiscoverySettings, readSettings, SettingError } from './settings.ts'
export { type StatusTypesOptions, statusTypes } from './status-types.ts'
export { syncOf } from './sync-status.ts'
