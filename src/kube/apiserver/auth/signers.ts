// Signs approved CertificateSigningRequests, each by the rules of its signer.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import type { Cause } from '../types.ts'
import { type KeyPair, sign } from './certificates.ts'

export interface SigningRequestSpec {
  readonly request: string
  readonly signerName: string
  readonly expirationSeconds?: number
  readonly usages?: readonly string[]
  readonly username?: string
  readonly groups?: readonly string[]
}

interface Signer {
  /** Usages that a request may ask for; one of `required` must be among them. */
  readonly usages: readonly string[]
  readonly requires: string
  /** What is wrong with the subject and names; undefined when nothing is. */
  readonly fault: (request: ParsedRequest) => string | undefined
}

export interface ParsedRequest {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly dns: readonly string[]
  readonly ips: readonly string[]
  readonly others: number
}

const keyUsages = ['digital signature', 'key encipherment']

const signers: Readonly<Record<string, Signer>> = {
  'kubernetes.io/kube-apiserver-client': {
    usages: [...keyUsages, 'client auth'],
    requires: 'client auth',
    fault: ({ organizations }) =>
      organizations.includes('system:masters')
        ? 'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed'
        : undefined,
  },
  'kubernetes.io/kube-apiserver-client-kubelet': {
    usages: [...keyUsages, 'client auth'],
    requires: 'client auth',
    fault: (request) => {
      if (request.dns.length + request.ips.length + request.others > 0)
        return 'subject alternative names are not allowed'
      return nodeFault(request)
    },
  },
  'kubernetes.io/kubelet-serving': {
    usages: [...keyUsages, 'server auth'],
    requires: 'server auth',
    fault: (request) => {
      if (request.others > 0) return 'only DNS and IP subject alternative names are allowed'
      if (request.dns.length + request.ips.length === 0) return 'DNS or IP subjectAltName is required'
      return nodeFault(request)
    },
  },
}

function nodeFault({ commonName, organizations }: ParsedRequest): string | undefined {
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes') return 'organization must be system:nodes'
  return commonName.startsWith('system:node:') ? undefined : 'common name must start with system:node:'
}

/** Whether this server signs for the signer. */
export function isOwnSigner(name: string): boolean {
  return Object.hasOwn(signers, name)
}

/** Parses the request of a CertificateSigningRequest; throws when it is none. */
function parse(spec: SigningRequestSpec): x509.Pkcs10CertificateRequest {
  return new x509.Pkcs10CertificateRequest(Buffer.from(spec.request, 'base64').toString('utf8'))
}

/** The subject that a request asks for; undefined when it is no request. */
export function subjectOf(spec: SigningRequestSpec): Pick<ParsedRequest, 'commonName' | 'organizations'> | undefined {
  try {
    return describe(parse(spec))
  } catch {
    return undefined
  }
}

/** What is wrong with a request as any signer would see it. */
export async function validateSigningRequest(spec: SigningRequestSpec): Promise<readonly Cause[]> {
  try {
    if (await parse(spec).verify()) return []
    return [faulty('the signature of the request is wrong')]
  } catch {
    return [faulty('PEM block type must be CERTIFICATE REQUEST')]
  }
}

const faulty = (why: string): Cause => ({
  reason: 'FieldValueInvalid',
  field: 'spec.request',
  message: `Invalid value: ${why}`,
})

/** The signed certificate in PEM. Rejects with what is wrong with the request. */
export async function signRequest(authority: KeyPair, spec: SigningRequestSpec): Promise<string> {
  const signer = signers[spec.signerName]
  if (signer === undefined) throw new SigningError(`no signer ${spec.signerName}`)
  const request = parse(spec)
  if (!(await request.verify())) throw new SigningError('the signature of the request is wrong')
  const usages = spec.usages ?? []
  if (!usages.includes(signer.requires) || usages.some((usage) => !signer.usages.includes(usage))) {
    throw new SigningError(`usages ${JSON.stringify(usages)} are not those of ${spec.signerName}`)
  }
  const parsed = describe(request)
  const fault = signer.fault(parsed)
  if (fault !== undefined) throw new SigningError(fault)
  const seconds = Math.max(600, Math.min(spec.expirationSeconds ?? 365 * 86400, 365 * 86400))
  return sign(authority, {
    publicKey: request.publicKey,
    subject: request.subjectName.toJSON(),
    names: { dns: parsed.dns, ips: parsed.ips },
    purposes: [signer.requires === 'client auth' ? x509.ExtendedKeyUsage.clientAuth : x509.ExtendedKeyUsage.serverAuth],
    notAfter: new Date(Date.now() + seconds * 1000),
  })
}

export class SigningError extends Error {
  readonly code = 'SIGNER_VALIDATION_FAILURE'
}

/** Subject alternative names; a request carries extensions by their identifier. */
function subjectNames(request: x509.Pkcs10CertificateRequest): readonly x509.GeneralName[] {
  const extension = request.getExtension('2.5.29.17')
  return extension === null ? [] : new x509.SubjectAlternativeNameExtension(extension.rawData).names.items
}

function describe(request: x509.Pkcs10CertificateRequest): ParsedRequest {
  const alternatives = subjectNames(request)
  const named = (type: string): string[] => alternatives.filter((name) => name.type === type).map((name) => name.value)
  const [dns, ips] = [named('dns'), named('ip')]
  return {
    commonName: request.subjectName.getField('CN')[0] ?? '',
    organizations: request.subjectName.getField('O'),
    dns,
    ips,
    others: alternatives.length - dns.length - ips.length,
  }
}
