// The model: services, workloads, policies and routes as derived collections. ambient/ computes the Workload API.
export * from './ambient/index.ts'
