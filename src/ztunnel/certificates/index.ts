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
export type { RevocationVerdict } from './revocation-verdict.ts'
export {
  openRevocations,
  type RevocationSource,
  type Revocations,
  type RevocationsOptions,
} from './revocations.ts'
export { renewalDelayMs, retryDelayMs } from './schedule.ts'
