// What channels of grpc-js lack, for the clients of the control plane. In: channel credentials; out: the same, with an end to every handshake.
export { AbandonableCredentials } from './abandonable-credentials.ts'
