// A policy in shared memory: of each match only the attributes that say something.
import type { TableView } from '../../shared-memory/index.ts'
import type { Cidr, Policy, PolicyMatch, ServiceAccountMatch, StringMatch } from '../model.ts'
import { parseCidr } from './address.ts'
import { StateError } from './errors.ts'
import { createFieldReader, type FieldWriter } from './fields.ts'

type StoredText = readonly [kind: StringMatch['kind'], value?: string]
type StoredAccount = readonly [namespace: string, serviceAccount: string]
type StoredList = readonly (StoredText | StoredAccount | string | number)[]
/** Attributes by their place in `attributes`. */
type StoredMatch = readonly (readonly [attribute: number, list: StoredList])[]
type StoredPolicy = readonly [
  name: string,
  namespace: string,
  scope: Policy['scope'],
  action: Policy['action'],
  dryRun: boolean,
  rejected: string | 0,
  rules: readonly (readonly (readonly StoredMatch[])[])[],
]

const texts = ['namespaces', 'notNamespaces', 'principals', 'notPrincipals'] as const
const accounts = ['serviceAccounts', 'notServiceAccounts'] as const
const blocks = ['sourceIps', 'notSourceIps', 'destinationIps', 'notDestinationIps'] as const
const ports = ['destinationPorts', 'notDestinationPorts'] as const
const attributes = [...texts, ...accounts, ...blocks, ...ports] as const

export function storePolicy(fields: FieldWriter, policy: Policy): Uint8Array {
  const stored: StoredPolicy = [
    policy.name,
    policy.namespace,
    policy.scope,
    policy.action,
    policy.dryRun,
    policy.rejected ?? 0,
    policy.rules.map((rule) => rule.map((clause) => clause.map(storeMatch))),
  ]
  fields.begin()
  fields.text(JSON.stringify(stored))
  return fields.finish()
}

export function createPolicyLoader(): (view: TableView, leaf: number) => Policy {
  const fields = createFieldReader()
  return (view, leaf) => {
    fields.open(view, leaf)
    const stored = JSON.parse(fields.text()) as StoredPolicy
    const [name, namespace, scope, action, dryRun, rejected, rules] = stored
    return {
      name,
      namespace,
      scope,
      action,
      dryRun,
      ...(rejected === 0 ? {} : { rejected }),
      rules: rules.map((rule) => rule.map((clause) => clause.map(loadMatch))),
    }
  }
}

function storeMatch(match: PolicyMatch): StoredMatch {
  const stored: (readonly [number, StoredList])[] = []
  for (const [index, attribute] of attributes.entries()) {
    const list: readonly (StringMatch | ServiceAccountMatch | Cidr | number)[] = match[attribute]
    if (list.length > 0) stored.push([index, list.map(storeItem)])
  }
  return stored
}

function storeItem(item: StringMatch | ServiceAccountMatch | Cidr | number): StoredList[number] {
  if (typeof item === 'number') return item
  if ('serviceAccount' in item) return [item.namespace, item.serviceAccount]
  if ('kind' in item) return item.kind === 'presence' ? [item.kind] : [item.kind, item.value]
  return item.text
}

const none: readonly never[] = []

const noAttributes: PolicyMatch = {
  namespaces: none,
  notNamespaces: none,
  principals: none,
  notPrincipals: none,
  serviceAccounts: none,
  notServiceAccounts: none,
  sourceIps: none,
  notSourceIps: none,
  destinationIps: none,
  notDestinationIps: none,
  destinationPorts: none,
  notDestinationPorts: none,
}

function loadMatch(stored: StoredMatch): PolicyMatch {
  if (stored.length === 0) return noAttributes
  const given = stored.map(([index, list]) => {
    const attribute = attributes[index]
    if (attribute === undefined) throw new StateError('INVALID_RESOURCE', `a stored policy has an attribute ${index}`)
    return [attribute, list.map((item) => loadItem(attribute, item))]
  })
  return { ...noAttributes, ...Object.fromEntries(given) }
}

function loadItem(attribute: (typeof attributes)[number], item: StoredList[number]): unknown {
  if (typeof item === 'number') return item
  if (typeof item === 'string') return loadBlock(item)
  const [first, second] = item
  if ((accounts as readonly string[]).includes(attribute)) return { namespace: first, serviceAccount: second }
  return first === 'presence' ? { kind: first } : { kind: first, value: second }
}

function loadBlock(text: string): Cidr {
  const cidr = parseCidr(text)
  if (cidr === undefined) throw new StateError('INVALID_RESOURCE', `a stored policy has the block ${text}`)
  return cidr
}
