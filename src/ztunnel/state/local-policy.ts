// A policy of a local file.
import type { Cidr, Policy, PolicyMatch, StringMatch } from '../model.ts'
import { parseCidr } from './address.ts'
import {
  type At,
  fail,
  readBoolean,
  readChoice,
  readList,
  readMap,
  readObject,
  readPort,
  readText,
} from './local-read.ts'

export function readPolicy(at: At): Policy {
  const fields = readObject(at, ['name', 'namespace', 'scope', 'action', 'dryRun', 'rules'], [])
  return {
    name: readText(fields.get('name')),
    namespace: readText(fields.get('namespace')),
    scope: readChoice(fields.get('scope'), ['Global', 'Namespace', 'WorkloadSelector'], 'Namespace'),
    action: readChoice(fields.get('action'), ['Allow', 'Deny'], 'Allow'),
    dryRun: readBoolean(fields.get('dryRun')),
    rules: readList(fields.get('rules'), (rule) => readList(rule, (clause) => readList(clause, readMatch))),
  }
}

const matchKeys: readonly (keyof PolicyMatch)[] = [
  'namespaces',
  'notNamespaces',
  'principals',
  'notPrincipals',
  'serviceAccounts',
  'notServiceAccounts',
  'sourceIps',
  'notSourceIps',
  'destinationIps',
  'notDestinationIps',
  'destinationPorts',
  'notDestinationPorts',
]

export function readMatch(at: At): PolicyMatch {
  const fields = readObject(at, [], matchKeys)
  const list = <T>(key: keyof PolicyMatch, read: (one: At) => T): readonly T[] => readList(fields.get(key), read)
  return {
    namespaces: list('namespaces', readStringMatch),
    notNamespaces: list('notNamespaces', readStringMatch),
    principals: list('principals', readStringMatch),
    notPrincipals: list('notPrincipals', readStringMatch),
    serviceAccounts: list('serviceAccounts', readServiceAccount),
    notServiceAccounts: list('notServiceAccounts', readServiceAccount),
    sourceIps: list('sourceIps', readCidr),
    notSourceIps: list('notSourceIps', readCidr),
    destinationIps: list('destinationIps', readCidr),
    notDestinationIps: list('notDestinationIps', readCidr),
    destinationPorts: list('destinationPorts', readPort),
    notDestinationPorts: list('notDestinationPorts', readPort),
  }
}

/** `{Exact: text}`, `{Prefix: text}`, `{Suffix: text}` or `{Presence: []}`. */
export function readStringMatch(at: At): StringMatch {
  const entries = [...readMap(at)]
  const [kind, field] = entries[0] ?? []
  const isText = typeof field?.value === 'string'
  if (entries.length === 1 && field !== undefined) {
    if (kind === 'Exact' && isText) return { kind: 'exact', value: readText(field) }
    if (kind === 'Prefix' && isText) return { kind: 'prefix', value: readText(field) }
    if (kind === 'Suffix' && isText) return { kind: 'suffix', value: readText(field) }
    if (kind === 'Presence') return { kind: 'presence' }
  }
  return fail(at, 'one of Exact, Prefix, Suffix with a text, or Presence')
}

function readServiceAccount(at: At): PolicyMatch['serviceAccounts'][number] {
  const fields = readObject(at, ['namespace', 'serviceAccount'], [])
  return { namespace: readText(fields.get('namespace')), serviceAccount: readText(fields.get('serviceAccount')) }
}

function readCidr(at: At): Cidr {
  return parseCidr(readText(at)) ?? fail(at, 'an address block <IP>/<length>')
}
