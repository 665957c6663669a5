// The rules of names in the API: RFC 1123 labels and subdomains, label keys and values.

const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/
const serviceLabel = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/
const qualified = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const portName = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/

const tooLong = (limit: number): string => `must be no more than ${limit} characters`

/** What is wrong with a name as an RFC 1123 label; undefined when nothing is. */
export function dnsLabelFault(name: string): string | undefined {
  if (name.length > 63) return tooLong(63)
  if (label.test(name)) return undefined
  return `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
}

/** What is wrong with a name as an RFC 1123 subdomain; undefined when nothing is. */
export function dnsSubdomainFault(name: string): string | undefined {
  if (name.length > 253) return tooLong(253)
  if (subdomain.test(name)) return undefined
  return `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
}

/** What is wrong with a name as an RFC 1035 label, which Services need; undefined when nothing is. */
export function dns1035LabelFault(name: string): string | undefined {
  if (name.length > 63) return tooLong(63)
  if (serviceLabel.test(name)) return undefined
  return `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`
}

/** What is wrong with a name that only becomes a path segment; undefined when nothing is. */
export function pathSegmentFault(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  const bad = ['/', '%'].find((character) => name.includes(character))
  return bad === undefined ? undefined : `may not contain '${bad}'`
}

/** What is wrong with a label key; undefined when nothing is. */
export function labelKeyFault(key: string): string | undefined {
  const parts = key.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) {
    return `a qualified name must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
  }
  if (parts.length === 2) {
    const fault = parts[0] === '' ? 'must be non-empty' : dnsSubdomainFault(parts[0] ?? '')
    if (fault !== undefined) return `prefix part ${fault}`
  }
  if (name === '') return 'name part must be non-empty'
  if (name.length > 63) return `name part ${tooLong(63)}`
  if (qualified.test(name)) return undefined
  return `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
}

/** What is wrong with a label value; undefined when nothing is. */
export function labelValueFault(value: string): string | undefined {
  if (value === '') return undefined
  if (value.length > 63) return tooLong(63)
  if (qualified.test(value)) return undefined
  return `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
}

/** What is wrong with the name of a container port; undefined when nothing is. */
export function portNameFault(name: string): string | undefined {
  if (name.length > 15) return tooLong(15)
  if (!portName.test(name) || name.includes('--')) {
    return `must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), not two hyphens in a row`
  }
  return /[a-z]/.test(name) ? undefined : 'must contain at least one letter (a-z)'
}
