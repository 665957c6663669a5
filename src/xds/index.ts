// The xDS protocol: a server for any type that has a source of encoded resources. The client has an entry of its own, client/index.ts.
export type { Attend, Attendance, AttendedClient, HealthReport } from './server/attendance.ts'
export type { Connection } from './server/connection.ts'
export { authorizeNode, type NodeType, nodeTypes, type ProxyNode, parseNode } from './server/node.ts'
export { createPushLane, type PushLane, type QuietTimes, type Wave } from './server/push-lane.ts'
export { type AuthenticateCaller, createXdsServer, type XdsServer, type XdsServerOptions } from './server/server.ts'
export { StreamError } from './server/stream-error.ts'
export type { ServedType, Watch } from './server/watch.ts'
export type * from './types.ts'
