// One rule of an AuthorizationPolicy as one Group: what a node proxy can judge of it.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  AuthorizationCondition,
  AuthorizationOperation,
  AuthorizationRule,
  AuthorizationSource,
} from '../../../api/index.ts'
import type { security } from '../../../proto/index.ts'
import { parsePrefix } from '../addresses.ts'

export type GroupInit = MessageInitShape<typeof security.GroupSchema>
export type MatchInit = MessageInitShape<typeof security.MatchSchema>
type StringMatchInit = MessageInitShape<typeof security.StringMatchSchema>

export interface ConvertedRule {
  /** Undefined where the rule is dropped. */
  readonly group: GroupInit | undefined
  /** What only an L7 proxy can judge, by its name in the policy. */
  readonly l7: readonly string[]
  /** Values that cannot be read, with their place in the rule. */
  readonly invalid: readonly string[]
  /** Whether the group can match a connection at all. */
  readonly enforceable: boolean
}

/** Collects what was found in a rule that cannot be judged. */
interface Findings {
  readonly action: 'ALLOW' | 'DENY'
  readonly namespace: string
  readonly l7: string[]
  readonly invalid: string[]
}

/** `namespace` is that of the policy. A rule that cannot be read at all never admits: it is dropped from an ALLOW policy, and matches everything in a DENY policy. */
export function convertRule(rule: AuthorizationRule, action: 'ALLOW' | 'DENY', namespace: string): ConvertedRule {
  const findings: Findings = { action, namespace, l7: [], invalid: [] }
  try {
    const rules = rulesOf(rule, findings)
    const dropped = action === 'ALLOW' && findings.l7.length > 0
    return {
      group: dropped ? undefined : { rules },
      l7: findings.l7,
      invalid: findings.invalid,
      enforceable: !dropped && rules.every(({ matches }) => matches.some((match) => Object.keys(match).length > 0)),
    }
  } catch (error) {
    const invalid = [`rule: ${error instanceof Error ? error.message : String(error)}`]
    return action === 'ALLOW'
      ? { group: undefined, l7: [], invalid, enforceable: false }
      : { group: { rules: [] }, l7: [], invalid, enforceable: true }
  }
}

function rulesOf(rule: AuthorizationRule, findings: Findings): { matches: MatchInit[] }[] {
  noteUnknown(rule, ['from', 'to', 'when'], findings)
  const rules: { matches: MatchInit[] }[] = []
  const add = (matches: MatchInit[]): void => {
    if (matches.length > 0) rules.push({ matches })
  }
  add((rule.to ?? []).map(({ operation }) => operationMatch(operation ?? {}, findings)))
  add((rule.from ?? []).map(({ source }) => sourceMatch(source ?? {}, findings)))
  for (const condition of rule.when ?? []) add([conditionMatch(condition, findings)])
  return rules
}

/** A restriction that is not known here must not be lost: it counts among those that cannot be judged. */
function noteUnknown(part: object, known: readonly string[], findings: Findings): void {
  for (const name of Object.keys(part)) if (!known.includes(name)) findings.l7.push(name)
}

const l7Operation = ['hosts', 'notHosts', 'methods', 'notMethods', 'paths', 'notPaths'] as const
const l4Operation = ['ports', 'notPorts']
const l4Source = [
  'principals',
  'notPrincipals',
  'namespaces',
  'notNamespaces',
  'serviceAccounts',
  'notServiceAccounts',
  'ipBlocks',
  'notIpBlocks',
  'trustDomains',
  'notTrustDomains',
]
const l7Source = ['remoteIpBlocks', 'notRemoteIpBlocks', 'requestPrincipals', 'notRequestPrincipals'] as const

function operationMatch(operation: AuthorizationOperation, findings: Findings): MatchInit {
  for (const name of l7Operation) if (isSet(operation[name])) findings.l7.push(name)
  noteUnknown(operation, [...l7Operation, ...l4Operation], findings)
  return new MatchBuilder(findings)
    .positive('destinationPorts', 'ports', operation.ports, parsePort)
    .negative('notDestinationPorts', 'notPorts', operation.notPorts, parsePort)
    .build()
}

function sourceMatch(source: AuthorizationSource, findings: Findings): MatchInit {
  for (const name of l7Source) if (isSet(source[name])) findings.l7.push(name)
  noteUnknown(source, [...l7Source, ...l4Source], findings)
  const account = (text: string) => parseServiceAccount(text, findings.namespace)
  const builder = new MatchBuilder(findings)
    .positive('namespaces', 'namespaces', source.namespaces, parseString)
    .negative('notNamespaces', 'notNamespaces', source.notNamespaces, parseString)
    .positive('serviceAccounts', 'serviceAccounts', source.serviceAccounts, account)
    .negative('notServiceAccounts', 'notServiceAccounts', source.notServiceAccounts, account)
    .positive('sourceIps', 'ipBlocks', source.ipBlocks, parsePrefix)
    .negative('notSourceIps', 'notIpBlocks', source.notIpBlocks, parsePrefix)
  const principals = principalsOf(source, findings)
  if (principals === 'none') return {}
  return builder
    .positive('principals', 'principals', principals.positive, (one) => one)
    .negative('notPrincipals', 'notPrincipals', principals.negative, (one) => one)
    .build()
}

function conditionMatch({ key, values, notValues }: AuthorizationCondition, findings: Findings): MatchInit {
  const builder = new MatchBuilder(findings)
  const both = <T>(
    positive: keyof MatchInit,
    negative: keyof MatchInit,
    parse: (text: string) => T | undefined,
  ): MatchInit =>
    builder.positive(positive, key, values, parse).negative(negative, `${key} notValues`, notValues, parse).build()
  switch (key) {
    case 'source.ip':
      return both('sourceIps', 'notSourceIps', parsePrefix)
    case 'source.namespace':
      return both('namespaces', 'notNamespaces', parseString)
    case 'source.principal':
      return both('principals', 'notPrincipals', parseString)
    case 'destination.ip':
      return both('destinationIps', 'notDestinationIps', parsePrefix)
    case 'destination.port':
      return both('destinationPorts', 'notDestinationPorts', parsePort)
    default:
      findings.l7.push(key)
      return {}
  }
}

/** Holds for every connection: no connection goes to port 0. */
const always: MatchInit = { notDestinationPorts: [0] }

/**
 * Builds a Match that never admits more than written: in an ALLOW policy a list with a value that cannot be read makes the
 * whole Match empty (which never matches) unless the rest of a positive list still says something. In a DENY policy a Match of which
 * nothing else is left holds for everything.
 */
class MatchBuilder {
  readonly #findings: Findings
  readonly #match: Record<string, unknown[]> = {}
  #never = false
  #unread = false

  constructor(findings: Findings) {
    this.#findings = findings
  }

  positive<S, T>(
    field: keyof MatchInit,
    name: string,
    values: readonly S[] | undefined,
    parse: (value: S) => T | undefined,
  ): this {
    const { good, bad } = this.#parse(name, values, parse)
    if (bad && good.length === 0 && this.#findings.action === 'ALLOW') this.#never = true
    if (good.length > 0) this.#match[field] = good
    return this
  }

  negative<S, T>(
    field: keyof MatchInit,
    name: string,
    values: readonly S[] | undefined,
    parse: (value: S) => T | undefined,
  ): this {
    const { good, bad } = this.#parse(name, values, parse)
    if (bad && this.#findings.action === 'ALLOW') this.#never = true
    if (good.length > 0) this.#match[field] = good
    return this
  }

  build(): MatchInit {
    if (this.#never) return {}
    const isLost = this.#unread && this.#findings.action === 'DENY' && Object.keys(this.#match).length === 0
    return isLost ? always : (this.#match as MatchInit)
  }

  #parse<S, T>(
    name: string,
    values: readonly S[] = [],
    parse: (value: S) => T | undefined,
  ): { good: T[]; bad: boolean } {
    const good: T[] = []
    let bad = false
    for (const value of values) {
      const parsed = parse(value)
      if (parsed !== undefined) good.push(parsed)
      else {
        bad = true
        this.#unread = true
        this.#findings.invalid.push(`${name}: ${JSON.stringify(value)}`)
      }
    }
    return { good, bad }
  }
}

/** Principals with the trust domains of the source worked in; `none` where no principal can satisfy both. */
function principalsOf(
  source: AuthorizationSource,
  findings: Findings,
): { positive: StringMatchInit[]; negative: StringMatchInit[] } | 'none' {
  const { principals = [], notPrincipals = [], trustDomains = [], notTrustDomains = [] } = source
  const negative = notPrincipals.map(parseString)
  if (notTrustDomains.some(isSuffix)) findings.l7.push('notTrustDomains')
  else negative.push(...notTrustDomains.map(inTrustDomain))

  if (trustDomains.length === 0) return { positive: principals.map(parseString), negative }
  if (
    trustDomains.some(isSuffix) ||
    principals.some((principal) => principal.startsWith('*') || principal.endsWith('*'))
  ) {
    findings.l7.push('trustDomains')
    return { positive: principals.map(parseString), negative }
  }
  if (principals.length === 0) return { positive: trustDomains.map(inTrustDomain), negative }
  const matching = principals.filter((principal) => {
    const [trustDomain = ''] = principal.split('/')
    return trustDomains.some((wanted) =>
      wanted.endsWith('*') ? trustDomain.startsWith(wanted.slice(0, -1)) : trustDomain === wanted,
    )
  })
  return matching.length === 0 ? 'none' : { positive: matching.map(parseString), negative }
}

const isSuffix = (text: string): boolean => text.startsWith('*') && text !== '*'
const isSet = (values: readonly string[] | undefined): boolean => values !== undefined && values.length > 0

/** A principal starts with its trust domain. */
function inTrustDomain(trustDomain: string): StringMatchInit {
  if (trustDomain === '*') return { matchType: { case: 'presence', value: {} } }
  const prefix = trustDomain.endsWith('*') ? trustDomain.slice(0, -1) : `${trustDomain}/`
  return { matchType: { case: 'prefix', value: prefix } }
}

function parseString(text: string): StringMatchInit {
  if (text === '*') return { matchType: { case: 'presence', value: {} } }
  if (text.startsWith('*')) return { matchType: { case: 'suffix', value: text.slice(1) } }
  if (text.endsWith('*')) return { matchType: { case: 'prefix', value: text.slice(0, -1) } }
  return { matchType: { case: 'exact', value: text } }
}

function parsePort(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 65536
  return port <= 65535 ? port : undefined
}

function parseServiceAccount(
  text: string,
  policyNamespace: string,
): { namespace: string; serviceAccount: string } | undefined {
  const [first = '', second, ...rest] = text.split('/')
  const [namespace, serviceAccount] = second === undefined ? [policyNamespace, first] : [first, second]
  return rest.length > 0 || serviceAccount === '' ? undefined : { namespace, serviceAccount }
}
