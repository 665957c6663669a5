// The key exchange group that a compliance policy demands.

/** The only group under COMPLIANCE_POLICY=pqc, by its OpenSSL name. */
export const postQuantumGroup = 'X25519MLKEM768'
