// What a request may ask for when another signer certifies it as it is: one identity of the caller, and nothing else.
import { type CheckedRequest, checkCertificateRequest } from '../signing/csr.ts'
import { SigningError } from '../signing/errors.ts'
import { x509 } from '../signing/x509.ts'

const subjectAltName = '2.5.29.17'
const extensionRequest = '1.2.840.113549.1.9.14'

export interface RequestForSigner extends CheckedRequest {
  /** The one name that the request asks for. */
  readonly identity: string
}

/** Throws a SigningError (CSR_ERROR) unless the request names one SPIFFE identity of the caller, and holds no other name or extension. */
export function validateRequestForSigner(csrPem: string, callerIdentities: readonly string[]): RequestForSigner {
  const checked = checkCertificateRequest(csrPem)
  const identity = soleIdentity(checked.request)
  if (identity === undefined || !callerIdentities.includes(identity)) {
    throw new SigningError('CSR_ERROR', 'unable to validate SAN Identities in CSR')
  }
  return { ...checked, identity }
}

/** Undefined also where the library finds an extension that it cannot read. */
function soleIdentity(request: CheckedRequest['request']): string | undefined {
  try {
    return asksForNothingElse(request) ? spiffeNameOf(request) : undefined
  } catch {
    return undefined
  }
}

function spiffeNameOf({ extensions: [extension, ...others] }: CheckedRequest['request']): string | undefined {
  if (extension?.type !== subjectAltName || others.length > 0) return undefined
  const [name, ...more] = new x509.SubjectAlternativeNameExtension(extension.rawData).names.items
  const isIdentity = name?.type === 'url' && name.value.startsWith('spiffe://')
  return isIdentity && more.length === 0 ? name.value : undefined
}

function asksForNothingElse(request: CheckedRequest['request']): boolean {
  // Of several requests for extensions we would read the first, and the signer perhaps another.
  const foreignAttribute =
    request.attributes.some(({ type, values }) => type !== extensionRequest || values.length !== 1) ||
    request.attributes.length > 1
  const subject = request.subjectName.toJSON().flatMap((part) => Object.entries(part))
  const isBare = subject.every(([type, values]) => type === 'O' && values.every((value) => isEmptyText(value)))
  return !foreignAttribute && isBare
}

function isEmptyText(value: unknown): boolean {
  if (typeof value === 'string') return value === ''
  return typeof value === 'object' && value !== null && Object.values(value).every((text) => text === '')
}
