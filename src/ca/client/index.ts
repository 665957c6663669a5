// What a holder of certificates needs: identities, PEM, requests, answers, revocation lists and the client of a CA. Loads nothing that signs.
export {
  buildSpiffe,
  canonicalTrustDomain,
  expandWithAliases,
  parseSpiffe,
  SpiffeError,
  type SpiffeIdentity,
  spiffeOf,
} from '../../util/index.ts'
export {
  covers,
  parseRevocationLists,
  type RevocationList,
  RevocationListError,
  revokedIn,
} from '../revocation/index.ts'
export type { WorkloadCertificate } from '../types.ts'
export { type AnswerOptions, certificateFromAnswer } from './answer.ts'
export { type CaClient, type CaClientOptions, type ChannelRoots, createCaClient } from './ca-client.ts'
export { CertificateError, type CertificateErrorCode } from './errors.ts'
export { type CertificateRequest, createCertificateRequest } from './request.ts'
export { rotationDelayMs, type Validity } from './rotation-delay.ts'
export { type CreateCertificateMethod, certificateServiceDefinition } from './service-definition.ts'
export { type SubjectAltName, subjectAltNamesOf, uriNamesOf } from './subject-alt-names.ts'
