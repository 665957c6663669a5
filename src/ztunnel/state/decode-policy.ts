// The message `istio.security.Authorization` → a policy. What cannot be understood rejects the policy; no condition is ever dropped.
import { fromBinary } from '@bufbuild/protobuf'
import { security as proto } from '../../proto/index.ts'
import type { Cidr, Policy, PolicyMatch, StringMatch } from '../model.ts'
import { cidrFromBytes, ipFromBytes } from './address.ts'
import { decodeIp, decodePort, unknownEnum } from './decode-address.ts'
import { invalidResource, messageOf, type StateError } from './errors.ts'

export type DecodedPolicy =
  | { readonly kind: 'policy'; readonly policy: Policy }
  /** `standIn` is the strictest policy of the same name, scope and action, where these could be read. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly standIn?: Policy }

/** Decodes one resource; never throws. */
export function decodePolicy(body: Uint8Array): DecodedPolicy {
  let message: proto.Authorization
  try {
    message = fromBinary(proto.AuthorizationSchema, body)
  } catch (error) {
    return { kind: 'rejected', reason: `malformed message: ${messageOf(error)}` }
  }
  try {
    const rules = message.groups.map((group) => group.rules.map((clause) => clause.matches.map(toMatch)))
    return { kind: 'policy', policy: { ...toHead(message), rules } }
  } catch (error) {
    const reason = (error as StateError).message
    return { kind: 'rejected', reason, standIn: strictest(message, reason) }
  }
}

/** A DENY that cannot be read denies everything, an ALLOW that cannot be read allows nothing. */
function strictest(message: proto.Authorization, reason: string): Policy {
  const action = message.action === proto.Action.DENY ? 'Deny' : 'Allow'
  return {
    name: message.name,
    namespace: message.namespace,
    scope: scopes[message.scope] ?? 'Namespace',
    action,
    dryRun: message.dryRun,
    rejected: reason,
    rules: action === 'Deny' ? [[]] : [],
  }
}

const scopes: Readonly<Record<number, Policy['scope']>> = { 0: 'Global', 1: 'Namespace', 2: 'WorkloadSelector' }
const actions: Readonly<Record<number, Policy['action']>> = { 0: 'Allow', 1: 'Deny' }

function toHead(message: proto.Authorization): Omit<Policy, 'rules'> {
  const { name, namespace, dryRun } = message
  const scope = scopes[message.scope] ?? unknownEnum('policy scope', message.scope)
  const action = actions[message.action] ?? unknownEnum('policy action', message.action)
  return { name, namespace, scope, action, dryRun }
}

function toMatch(message: proto.Match): PolicyMatch {
  return {
    namespaces: message.namespaces.map(toStringMatch),
    notNamespaces: message.notNamespaces.map(toStringMatch),
    principals: message.principals.map(toStringMatch),
    notPrincipals: message.notPrincipals.map(toStringMatch),
    serviceAccounts: message.serviceAccounts.map(toServiceAccount),
    notServiceAccounts: message.notServiceAccounts.map(toServiceAccount),
    sourceIps: message.sourceIps.map(toCidr),
    notSourceIps: message.notSourceIps.map(toCidr),
    destinationIps: message.destinationIps.map(toCidr),
    notDestinationIps: message.notDestinationIps.map(toCidr),
    destinationPorts: message.destinationPorts.map(decodePort),
    notDestinationPorts: message.notDestinationPorts.map(decodePort),
  }
}

function toStringMatch(message: proto.StringMatch): StringMatch {
  const { matchType } = message
  switch (matchType.case) {
    case 'exact':
    case 'prefix':
    case 'suffix':
      return { kind: matchType.case, value: matchType.value }
    case 'presence':
      return { kind: 'presence' }
    case undefined:
      throw invalidResource('string match has no type')
  }
}

function toServiceAccount(message: proto.ServiceAccountMatch): PolicyMatch['serviceAccounts'][number] {
  return { namespace: message.namespace, serviceAccount: message.serviceAccount }
}

function toCidr(message: proto.Address): Cidr {
  const cidr = cidrFromBytes(message.address, message.length)
  if (cidr !== undefined) return cidr
  if (ipFromBytes(message.address) === undefined) decodeIp(message.address)
  throw invalidResource(`invalid cidr: ${decodeIp(message.address)}/${message.length}`)
}
