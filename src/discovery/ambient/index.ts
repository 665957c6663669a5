// The ambient index: from the objects of the clusters to the resources of the Workload API. In: collections of objects,
// mesh config, settings. Out: the Address, Workload and Authorization resources, and the status conditions to be written.
export { ipText } from './addresses.ts'
export {
  AddressAllocator,
  type AllocationWrite,
  type AllocatorOptions,
  type HostAddress,
} from './allocation/allocator.ts'
export { type AllocationOptions, allocationPatch, runAddressAllocation } from './allocation/run-allocation.ts'
export { type AmbientIndex, createAmbientIndex } from './ambient-index.ts'
export { type ObjectConditions, ownedConditionTypes } from './conditions.ts'
export { type AmbientView, viewAmbient } from './debug-view.ts'
export type { EndpointCounts } from './endpoint-counts.ts'
export { type EndpointView, type ServiceEndpoints, viewEndpoints } from './endpoint-view.ts'
export type { UnusedGateway } from './gateway-services.ts'
export {
  type AmbientInputs,
  type AmbientKind,
  type AmbientMeshConfig,
  type AmbientObjects,
  ambientKinds,
  createAmbientInputs,
  type InCluster,
  type ObjectFeed,
} from './inputs.ts'
export { createKeptFields } from './kept.ts'
export type { PublishedService, ServiceInfo } from './model.ts'
export type { AmbientMeshNetworks } from './network-plan.ts'
export { type NetworkGateway, placeText } from './networks.ts'
export { type AmbientSettings, defaultAmbientSettings } from './settings.ts'
export { addressTypeUrl, authorizationTypeUrl, workloadTypeUrl } from './sources.ts'
