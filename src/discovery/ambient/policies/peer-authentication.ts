// PeerAuthentications: which of the policies that node proxies enforce stand for them.
import { create } from '@bufbuild/protobuf'
import type { MutualTlsMode, PeerAuthentication } from '../../../api/index.ts'
import { security } from '../../../proto/index.ts'
import { compareText } from '../model.ts'
import { hasReadableSelector, selectedLabels } from './selection.ts'

export const staticStrictName = 'istio_converted_static_strict'

export interface PeerPolicy {
  readonly namespace: string
  readonly name: string
  readonly created: string
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly mode: MutualTlsMode
  /** By port, ascending. */
  readonly ports: readonly (readonly [port: number, mode: MutualTlsMode])[]
}

/** A policy whose selector or ports cannot be read is STRICT wherever it may have been meant for. */
export function peerPolicy({ metadata, spec }: PeerAuthentication): PeerPolicy {
  const ports = Object.entries(spec?.portLevelMtls ?? {})
  const isReadable = hasReadableSelector(spec) && ports.every(([port]) => isPort(port))
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    created: metadata.creationTimestamp ?? '',
    selector: selectedLabels(spec),
    mode: isReadable ? readMode(spec?.mtls?.mode) : 'STRICT',
    ports: isReadable
      ? ports.map(([port, mtls]) => [Number(port), readMode(mtls?.mode)] as const).sort(([a], [b]) => a - b)
      : [],
  }
}

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535
}

/** A word that is no mode was meant to say something: it counts as the mode that lets nothing unproven in. */
function readMode(mode: string | null | undefined): MutualTlsMode {
  switch (mode) {
    case undefined:
    case null:
    case 'UNSET':
      return 'UNSET'
    case 'DISABLE':
    case 'PERMISSIVE':
      return mode
    default:
      return 'STRICT'
  }
}

/** Of several policies for the same thing the oldest counts, then the first by name. */
export function oldest(policies: readonly PeerPolicy[]): PeerPolicy | undefined {
  const [first] = [...policies].sort((a, b) => compareText(a.created, b.created) || compareText(a.name, b.name))
  return first
}

/** The first mode that says something, from the most specific level to the mesh; PERMISSIVE where none does. */
export function effectiveMode(levels: readonly (MutualTlsMode | undefined)[]): Exclude<MutualTlsMode, 'UNSET'> {
  for (const mode of levels) if (mode !== undefined && mode !== 'UNSET') return mode
  return 'PERMISSIVE'
}

/** The name of the policy a workload has to list: of its own converted policy, or of the one that denies all plaintext. */
export function peerPolicyKeys(
  base: Exclude<MutualTlsMode, 'UNSET'>,
  own: PeerPolicy | undefined,
  rootNamespace: string,
): string[] {
  if (own !== undefined && convertedGroups(base, own) !== undefined) {
    return [`${own.namespace}/${convertedName(own)}`]
  }
  return base === 'STRICT' ? [`${rootNamespace}/${staticStrictName}`] : []
}

/** The policy that stands for one with port levels; undefined where the base mode says it all. */
export function convertPeerPolicy(
  base: Exclude<MutualTlsMode, 'UNSET'>,
  policy: PeerPolicy,
): security.Authorization | undefined {
  const groups = convertedGroups(base, policy)
  if (groups === undefined) return undefined
  return create(security.AuthorizationSchema, {
    name: convertedName(policy),
    namespace: policy.namespace,
    scope: security.Scope.WORKLOAD_SELECTOR,
    action: security.Action.DENY,
    groups,
  })
}

/** Denies every connection without an identity. */
export function staticStrict(rootNamespace: string): security.Authorization {
  return create(security.AuthorizationSchema, {
    name: staticStrictName,
    namespace: rootNamespace,
    scope: security.Scope.WORKLOAD_SELECTOR,
    action: security.Action.DENY,
    groups: [{ rules: [{ matches: [noIdentity()] }] }],
  })
}

const convertedName = ({ name }: PeerPolicy): string => `converted_peer_authentication_${name}`

const noIdentity = () => ({ notPrincipals: [{ matchType: { case: 'presence' as const, value: {} } }] })

function convertedGroups(base: Exclude<MutualTlsMode, 'UNSET'>, { ports }: PeerPolicy) {
  const strict = ports.filter(([, mode]) => mode === 'STRICT').map(([port]) => port)
  const exempt = ports.filter(([, mode]) => mode === 'PERMISSIVE' || mode === 'DISABLE').map(([port]) => port)
  if (base === 'STRICT') {
    if (exempt.length === 0) return undefined
    const elsewhere = exempt.map((port) => ({ matches: [{ notDestinationPorts: [port] }] }))
    return [{ rules: [{ matches: [noIdentity()] }, ...elsewhere] }]
  }
  if (strict.length === 0) return undefined
  return strict.map((port) => ({ rules: [{ matches: [{ destinationPorts: [port], ...noIdentity() }] }] }))
}
