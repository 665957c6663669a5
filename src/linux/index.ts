// System calls that Node does not offer, by FFI: network namespaces, socket options, descriptor passing. Linux on x86-64
// and arm64; elsewhere every call throws a LinuxError. Nothing is loaded before the first call.
export type { IpAddress } from './address.ts'
export { duplicateDescriptor } from './descriptor.ts'
export { LinuxError } from './errors.ts'
export { raiseDescriptorLimit } from './limits.ts'
export { trimMemory } from './memory.ts'
export {
  adoptNetworkNamespace,
  duplicateNetworkNamespace,
  type OpenNamespace,
  openNetworkNamespace,
  runInNamespace,
} from './namespace.ts'
export { capturePackets } from './packet-capture.ts'
export { connectSeqpacket, listenSeqpacket } from './seqpacket.ts'
export {
  createSocket,
  descriptorOf,
  isReset,
  type OriginalDestination,
  originalDestination,
  resetSocket,
  setMark,
} from './socket.ts'
export type {
  CreatedSocket,
  KeepaliveOptions,
  NetworkNamespace,
  SeqpacketConnection,
  SeqpacketListener,
  SocketOptions,
} from './types.ts'
