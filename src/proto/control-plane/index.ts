// Messages that only control planes and their tools use: apart, so that no node proxy loads them.
export * as csds from '../gen/envoy/service/status/v3/csds_pb.js'
export * as mcp from '../gen/istio/mcp/resource_pb.js'
export * as mesh from '../gen/istio/mesh/proxy_config_pb.js'
export * as networking from '../gen/istio/networking/entries_pb.js'
export * as policies from '../gen/istio/security/policies_pb.js'
