// TLS contexts of workload certificates, made once per certificate: reading a key and roots costs far more than a lookup.
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { WorkloadCertificate } from '../../ca/client/index.ts'

/** TLS 1.3 unless told otherwise. */
export type SecureContextSettings = Pick<
  SecureContextOptions,
  'minVersion' | 'maxVersion' | 'ciphers' | 'ecdhCurve' | 'sigalgs'
>

/** Returns the function that gives a certificate's context (for both ends of a connection). Contexts go with their certificates. */
export function createSecureContexts(
  settings: SecureContextSettings = {},
): (certificate: WorkloadCertificate) => SecureContext {
  const contexts = new WeakMap<WorkloadCertificate, SecureContext>()
  return (certificate) => {
    const known = contexts.get(certificate)
    if (known !== undefined) return known
    const context = createSecureContext({
      minVersion: 'TLSv1.3',
      ...settings,
      key: certificate.privateKey,
      cert: [certificate.leaf, ...certificate.intermediates].join(''),
      ca: [...certificate.roots],
    })
    contexts.set(certificate, context)
    return context
  }
}
