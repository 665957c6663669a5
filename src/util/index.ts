// Small things that several rooms need and no library offers.
export { parseGoDuration } from './go-duration.ts'
export { isIssuedBy } from './issued-by.ts'
export {
  certificateBlocks,
  isBundleSubsetEitherWay,
  isSameBundle,
  mergeBundles,
  type PemBlock,
  parseCertificates,
  pemBlocks,
  toPem,
} from './pem.ts'
export { presentedChain } from './presented-chain.ts'
export { acceptServerNames } from './server-names.ts'
export {
  buildSpiffe,
  canonicalTrustDomain,
  expandWithAliases,
  parseSpiffe,
  SpiffeError,
  type SpiffeIdentity,
  spiffeOf,
  splitSpiffe,
} from './spiffe.ts'
export { defaultStateDir } from './state-dir.ts'
