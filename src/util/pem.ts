// PEM text: taking it apart into blocks, and comparing bundles of certificates.
import { X509Certificate } from 'node:crypto'

export interface PemBlock {
  readonly label: string
  readonly der: Buffer
  /** The block as PEM, newline-terminated. */
  readonly pem: string
}

const blockPattern = /-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]*?)-----END \1-----/g

/** The PEM blocks of a text in order; text between them is skipped. */
export function pemBlocks(text: string): PemBlock[] {
  return [...text.matchAll(blockPattern)].map(([, label = '', body = '']) => {
    const der = Buffer.from(body, 'base64')
    return { label, der, pem: toPem(label, der) }
  })
}

export function toPem(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der).toString('base64')
  return `-----BEGIN ${label}-----\n${base64.replace(/(.{64})(?=.)/g, '$1\n')}\n-----END ${label}-----\n`
}

/** The CERTIFICATE blocks of a text, each as PEM. What they hold is not looked at. */
export function certificateBlocks(text: string): string[] {
  return pemBlocks(text).flatMap(({ label, pem }) => (label === 'CERTIFICATE' ? [pem] : []))
}

/** The certificates of a text; throws when one of them does not parse. */
export function parseCertificates(text: string): X509Certificate[] {
  return certificateBlocks(text).map((pem) => new X509Certificate(pem))
}

/** True when one bundle holds every certificate of the other. Order, repetition and other PEM blocks do not matter; empty bundles never match. */
export function isBundleSubsetEitherWay(a: string, b: string): boolean {
  const [left, right] = [new Set(certificateBlocks(a)), new Set(certificateBlocks(b))]
  if (left.size === 0 || right.size === 0) return false
  return left.isSubsetOf(right) || right.isSubsetOf(left)
}

/** True when both bundles hold the same set of certificates, and at least one. */
export function isSameBundle(a: string, b: string): boolean {
  const [left, right] = [new Set(certificateBlocks(a)), new Set(certificateBlocks(b))]
  return left.size > 0 && left.size === right.size && left.isSubsetOf(right)
}

/** Bundles joined to one, each certificate once, in the order of their first appearance. */
export function mergeBundles(...bundles: readonly string[]): string {
  return [...new Set(bundles.flatMap(certificateBlocks))].join('')
}
