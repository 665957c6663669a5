// Protobuf messages: our own .proto files and the xDS discovery API. Generated into gen/ at install (npm run generate).

export * as core from './gen/envoy/config/core/v3/base_pb.js'
export * as ads from './gen/envoy/service/discovery/v3/ads_pb.js'
export * as discovery from './gen/envoy/service/discovery/v3/discovery_pb.js'
export * as rpc from './gen/google/rpc/status_pb.js'
export * as security from './gen/istio/security/authorization_pb.js'
export * as ca from './gen/istio/v1/auth/ca_pb.js'
export * as workload from './gen/istio/workload/workload_pb.js'
export * as zds from './gen/istio/workload/zds/zds_pb.js'
