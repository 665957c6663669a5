// The subject alternative names of a certificate, as Node prints them, taken apart.
import type { X509Certificate } from 'node:crypto'

export interface SubjectAltName {
  readonly kind: 'uri' | 'dns' | 'ip' | 'email' | 'other'
  readonly value: string
}

const kinds: Readonly<Record<string, SubjectAltName['kind']>> = {
  URI: 'uri',
  DNS: 'dns',
  'IP Address': 'ip',
  email: 'email',
}

/** The names in order; undefined when the certificate has no such extension. */
export function subjectAltNamesOf(certificate: X509Certificate): SubjectAltName[] | undefined {
  const text = certificate.subjectAltName
  if (text === undefined) return undefined
  return splitNames(text).map((entry) => {
    const colon = entry.indexOf(':')
    const value = entry.slice(colon + 1)
    return {
      kind: kinds[entry.slice(0, colon)] ?? 'other',
      // A value with special characters is printed as a JSON string, so that it cannot pass for several names.
      value: value.startsWith('"') ? (JSON.parse(value) as string) : value,
    }
  })
}

/** The URI names in order. */
export function uriNamesOf(certificate: X509Certificate): string[] {
  return (subjectAltNamesOf(certificate) ?? []).flatMap(({ kind, value }) => (kind === 'uri' ? [value] : []))
}

function splitNames(text: string): string[] {
  if (text === '') return []
  const names: string[] = []
  let start = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (isQuoted && character === '\\') at += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && character === ',' && text[at + 1] === ' ') {
      names.push(text.slice(start, at))
      start = at + 2
    }
  }
  names.push(text.slice(start))
  return names
}
