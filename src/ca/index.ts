// Identities and certificates: the mesh's certificate authority and what stands before it. A process that only holds certificates
// enters by client/index.ts, which loads nothing that signs.
export * from './authentication/authenticator.ts'
export { createClientCertificateAuthenticator } from './authentication/client-certificate.ts'
export { type ForeignRoots, verifyForeignPeer, withForeignPeer } from './authentication/foreign-peer.ts'
export {
  createKubernetesTokenAuthenticator,
  type KubernetesTokenOptions,
  type ReviewToken,
  type TokenClusters,
} from './authentication/kubernetes-token.ts'
export { isMeshPeer } from './authentication/mesh-peer.ts'
export {
  createOidcAuthenticator,
  type JwtRule,
  JwtRuleError,
  type OidcOptions,
  parseJwtRule,
} from './authentication/oidc.ts'
export {
  type ServiceAccountCaller,
  serviceAccountOfReview,
  serviceAccountOfSubject,
  type TokenReviewStatus,
} from './authentication/service-account.ts'
export { createXfccAuthenticator, identitiesOfXfcc, trustOfPeers, type XfccOptions } from './authentication/xfcc.ts'
export { bindCertificateService, type CertificateServiceBinding, requestOfCall } from './certificate-grpc.ts'
export {
  CertificateRefusal,
  type CertificateRequestMessage,
  type CertificateService,
  type CertificateServiceOptions,
  createCertificateService,
} from './certificate-service.ts'
export * from './client/index.ts'
export { type CaMetrics, createCaMetrics, type ExpirySource } from './metrics.ts'
export {
  type AuthorizeImpersonation,
  createNodeAuthorizer,
  ImpersonationError,
  type ImpersonationRequest,
  type NodeAuthorizerOptions,
  parseTrustedAccounts,
} from './node-authorization.ts'
export { createPodIndex, type PodIndex, type PodLookup, type PodView, podViewOf } from './pod-index.ts'
export {
  createRegistrationAuthority,
  type RegistrationAuthority,
  type RegistrationAuthorityOptions,
  type SignInCluster,
} from './registration/registration-authority.ts'
export { chainWithRoot } from './registration/root-selection.ts'
export { createServingRequest, type ServingRequest } from './registration/serving-request.ts'
export { type SignerNames, signerNameOf } from './registration/signer-name.ts'
export { validateRequestForSigner } from './registration/validate-csr.ts'
export {
  crlConfigMap,
  crlConfigMapName,
  type DistributedConfigMap,
  namespacesWithoutRoot,
  rootConfigMap,
  rootConfigMapName,
} from './root-configmap.ts'
export {
  type AuthorityOptions,
  createAuthority,
  type SelfAuthority,
  type ServingCertificate,
} from './signing/authority.ts'
export { MaterialError, type MaterialErrorCode, SigningError, type SigningErrorCode } from './signing/errors.ts'
export { type MaterialPem, type SigningMaterial, signingMaterial } from './signing/material.ts'
export {
  type CaFiles,
  type CaSource,
  caSourceOf,
  checkReplacement,
  type FollowOptions,
  followCaFiles,
  pluggedMaterial,
  readCaDirectory,
} from './signing/plugged.ts'
export {
  type RotationOptions,
  type RotationOutcome,
  type RotatorOptions,
  rotateRoot,
  runRootRotator,
} from './signing/rotation.ts'
export {
  pluggedSecretName,
  type SecretContent,
  type SecretStore,
  selfSignedSecretName,
} from './signing/secrets.ts'
export { loadOrCreateSelfSigned, type SelfSigned, type SelfSignedOptions } from './signing/self-signed.ts'
export { type ServingNameOptions, servingNames } from './signing/serving-names.ts'
export { createMeshTrustBundle, type MeshTrustBundle } from './trust/mesh-trust-bundle.ts'
export { fetchBundle, rootsOfBundle, TrustBundleError } from './trust/spiffe-bundle.ts'
export type { Caller, CertificateAuthority, SigningRequest } from './types.ts'
