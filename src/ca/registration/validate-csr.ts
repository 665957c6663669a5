// What a request may ask for when another signer certifies it as it is: nothing but names the caller has.
import { checkCertificateRequest } from '../signing/csr.ts'
import { SigningError } from '../signing/errors.ts'
import { x509 } from '../signing/x509.ts'

const subjectAltName = '2.5.29.17'
const extensionRequest = '1.2.840.113549.1.9.14'

/** Rejects with a SigningError (CSR_ERROR) unless the request holds one URI of the caller at most, no other name and no other extension. */
export async function validateRequestForSigner(csrPem: string, callerIdentities: readonly string[]): Promise<void> {
  const { request } = await checkCertificateRequest(csrPem)
  const foreignAttribute = request.attributes.some(({ type }) => type !== extensionRequest)
  const foreignExtension = request.extensions.some(({ type }) => type !== subjectAltName)
  const names = request.extensions
    .filter((extension) => extension.type === subjectAltName)
    .flatMap(({ rawData }) => new x509.SubjectAlternativeNameExtension(rawData).names.items)
  const areTheirs = names.every(({ type, value }) => type === 'url' && callerIdentities.includes(value))
  const subject = request.subjectName.toJSON().flatMap((part) => Object.entries(part))
  const isBare = subject.every(([type, values]) => type === 'O' && values.every((value) => isEmptyText(value)))
  if (foreignAttribute || foreignExtension || names.length > 1 || !areTheirs || !isBare) {
    throw new SigningError('CSR_ERROR', 'unable to validate SAN Identities in CSR')
  }
}

function isEmptyText(value: unknown): boolean {
  if (typeof value === 'string') return value === ''
  return typeof value === 'object' && value !== null && Object.values(value).every((text) => text === '')
}
