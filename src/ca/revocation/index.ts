// Certificate revocation lists: what a thread needs that checks peers and has nothing to do with a CA.
export { covers, parseRevocationLists, type RevocationList, RevocationListError, revokedIn } from './crl.ts'
