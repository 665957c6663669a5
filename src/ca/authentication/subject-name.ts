// Subjects of certificates as proxies print them.
import { AuthenticationError } from './authenticator.ts'

/**
 * The common names of a subject: at most one, else nobody could tell which is meant. Read are the forms of RFC 4514 (`CN=a,O=b`, escapes
 * included: what is inside of another attribute is no name) and of OpenSSL (`/O=b/CN=a`). Throws an AuthenticationError for several names.
 */
export function commonNamesOf(subject: string): string[] {
  const attributes = subject.startsWith('/') ? subject.slice(1).split('/') : splitUnescaped(subject)
  const names = attributes.flatMap((attribute) => {
    const value = /^\s*(?:CN|2\.5\.4\.3)\s*=\s*(.*?)$/is.exec(attribute)?.[1]
    return value === undefined ? [] : [unescaped(value)]
  })
  if (names.length > 1)
    throw new AuthenticationError('error in parsing xfcc header: a subject with several common names')
  return names.filter((name) => name !== '')
}

/** Attributes, be they apart (`,`) or of one part of the name (`+`). */
function splitUnescaped(subject: string): string[] {
  const parts: string[] = []
  let part = ''
  let isQuoted = false
  for (let at = 0; at < subject.length; at += 1) {
    const character = subject[at] ?? ''
    if (character === '\\') {
      part += character + (subject[at + 1] ?? '')
      at += 1
      continue
    }
    if (character === '"') isQuoted = !isQuoted
    if (!isQuoted && (character === ',' || character === '+' || character === ';')) {
      parts.push(part)
      part = ''
    } else part += character
  }
  return [...parts, part]
}

function unescaped(value: string): string {
  const text = /^\s*"(.*)"\s*$/s.exec(value)?.[1] ?? value.replace(/(?<!\\)\s+$/, '')
  const bytes = text.replace(/(?:\\[0-9a-f]{2})+/gi, (run) =>
    Buffer.from(run.replaceAll('\\', ''), 'hex').toString('utf8'),
  )
  return bytes.replace(/\\(.)/gs, '$1')
}
