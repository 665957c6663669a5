// What a ClusterTrustBundle must be: named after its signer, and nothing but certificates, each once.
import { X509Certificate } from 'node:crypto'
import { immutable, invalidValue, required } from './causes.ts'
import type { Cause } from './kind.ts'
import { dnsSubdomainFault, pathSegmentFault } from './names.ts'

interface Bundle {
  readonly name: string
  readonly signerName: unknown
  readonly trustBundle: unknown
}

/** What is wrong with a bundle whose shape its schema has approved; `old`: what it is to replace. */
export function validateTrustBundle({ name, signerName, trustBundle }: Bundle, old?: Bundle): Cause[] {
  const signer = typeof signerName === 'string' ? signerName : ''
  const causes = [...nameFaults(name, signer), ...signerFaults(signer)]
  if (old !== undefined) causes.push(...immutable('spec.signerName', signerName, old.signerName))
  return [...causes, ...contentFaults(typeof trustBundle === 'string' ? trustBundle : '')]
}

function nameFaults(name: string, signer: string): Cause[] {
  const prefix = signer === '' ? '' : `${signer.replaceAll('/', ':')}:`
  const fault =
    signer === '' && name.includes(':')
      ? 'ClusterTrustBundle without signer name must not have ":" in its name'
      : name.startsWith(prefix)
        ? dnsSubdomainFault(name.slice(prefix.length))
        : `ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`
  return fault === undefined ? [] : [invalidValue('metadata.name', name, fault)]
}

function signerFaults(signer: string): Cause[] {
  if (signer === '') return []
  const [domain = '', path = '', ...more] = signer.split('/')
  const fault =
    more.length > 0 || !signer.includes('/')
      ? "must be a fully qualified domain and path of the form 'example.com/signer-name'"
      : (dnsSubdomainFault(domain) ?? dnsSubdomainFault(path) ?? pathSegmentFault(path))
  return fault === undefined ? [] : [invalidValue('spec.signerName', signer, fault)]
}

function contentFaults(trustBundle: string): Cause[] {
  if (trustBundle === '') return [required('spec.trustBundle')]
  const field = 'spec.trustBundle'
  const blocks = [...trustBundle.matchAll(/-----BEGIN ([^-\n]+)-----\r?\n([^-]*)-----END \1-----/g)]
  const faults = blocks.flatMap(([pem, type = '', body = ''], index) => {
    if (type !== 'CERTIFICATE') return [`entry ${index} has bad block type: ${type}`]
    if (body.includes(':')) return [`entry ${index} has PEM block headers`]
    return isCertificate(pem) ? [] : [`entry ${index} does not parse as X.509`]
  })
  const bodies = blocks.map(([, , body = '']) => body.replaceAll(/\s/g, ''))
  const repeated = bodies.findIndex((body, index) => bodies.indexOf(body) !== index)
  if (blocks.length === 0) faults.push('at least one trust anchor must be provided')
  else if (faults.length === 0 && repeated !== -1) {
    faults.push(`duplicate trust anchor (indices [${bodies.indexOf(bodies[repeated] ?? '')} ${repeated}])`)
  }
  return faults.map((fault) => invalidValue(field, '<value omitted>', fault))
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}
