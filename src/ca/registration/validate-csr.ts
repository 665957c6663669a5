// What a request may ask for when another signer certifies it as it is: nothing but names the caller has.
import { type CheckedRequest, checkCertificateRequest } from '../signing/csr.ts'
import { SigningError } from '../signing/errors.ts'
import { x509 } from '../signing/x509.ts'

const subjectAltName = '2.5.29.17'
const extensionRequest = '1.2.840.113549.1.9.14'

/** Throws a SigningError (CSR_ERROR) unless the request holds one URI of the caller at most, no other name and no other extension. */
export function validateRequestForSigner(csrPem: string, callerIdentities: readonly string[]): CheckedRequest {
  const checked = checkCertificateRequest(csrPem)
  if (!isReadable(() => asksForTheirsAlone(checked.request, callerIdentities))) {
    throw new SigningError('CSR_ERROR', 'unable to validate SAN Identities in CSR')
  }
  return checked
}

function asksForTheirsAlone(request: CheckedRequest['request'], callerIdentities: readonly string[]): boolean {
  // Of several requests for extensions we would read the first, and the signer perhaps another.
  const foreignAttribute =
    request.attributes.some(({ type, values }) => type !== extensionRequest || values.length !== 1) ||
    request.attributes.length > 1
  const foreignExtension = request.extensions.some(({ type }) => type !== subjectAltName)
  const names = request.extensions
    .filter((extension) => extension.type === subjectAltName)
    .flatMap(({ rawData }) => new x509.SubjectAlternativeNameExtension(rawData).names.items)
  const areTheirs = names.every(({ type, value }) => type === 'url' && callerIdentities.includes(value))
  const subject = request.subjectName.toJSON().flatMap((part) => Object.entries(part))
  const isBare = subject.every(([type, values]) => type === 'O' && values.every((value) => isEmptyText(value)))
  return !foreignAttribute && !foreignExtension && names.length <= 1 && areTheirs && isBare
}

function isEmptyText(value: unknown): boolean {
  if (typeof value === 'string') return value === ''
  return typeof value === 'object' && value !== null && Object.values(value).every((text) => text === '')
}

/** False also where the library finds an extension that it cannot read. */
function isReadable(check: () => boolean): boolean {
  try {
    return check()
  } catch {
    return false
  }
}
