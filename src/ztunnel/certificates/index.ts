// The node proxy's workload certificates: fetching, renewing, forgetting; revocation lists.
export { CertificateError, type WorkloadCertificate } from '../../ca/client/index.ts'
export { createKnownAuthorities, type KnownAuthorities } from './authorities.ts'
export { type Clock, systemClock } from './clock.ts'
export {
  type CertificateEntry,
  type CertificateManager,
  type CertificateManagerOptions,
  type CertificateState,
  createCertificateManager,
} from './manager.ts'
export { createPrefetch, isPrefetched } from './prefetch.ts'
export type { Priority } from './request-queue.ts'
export { openRevocations, type Revocations, type RevocationsOptions, type RevocationVerdict } from './revocations.ts'
export { renewalDelayMs, retryDelayMs } from './schedule.ts'
