// Workloads outside of clusters that register themselves and report their health, over their xDS streams.

export type { RegisteringProxy, WorkloadGroup } from './entry.ts'
export { createRegistrationMetrics } from './metrics.ts'
export { createWorkloadRegistration, type WorkloadRegistration } from './registration.ts'
