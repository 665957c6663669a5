// What grpc-js lacks: channel credentials with an end to every handshake, and log lines without the secrets of callers.
export { AbandonableCredentials } from './abandonable-credentials.ts'
export { takeLibraryLog } from './library-log.ts'
