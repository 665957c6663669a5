// The labels of the TCP metrics.
import { spiffeId } from '../decisions/identity.ts'
import type { Identity } from '../model.ts'
import {
  type ConnectionFacts,
  destinationIdentity,
  destinationPeer,
  type Peer,
  type ResponseFlag,
  sourceIdentity,
  sourcePeer,
} from './facts.ts'

export const sourceLabelNames = [
  'source_workload',
  'source_canonical_service',
  'source_canonical_revision',
  'source_workload_namespace',
  'source_principal',
  'source_app',
  'source_version',
  'source_cluster',
] as const

export const trafficLabelNames = [
  'reporter',
  ...sourceLabelNames,
  'destination_service',
  'destination_service_namespace',
  'destination_service_name',
  'destination_workload',
  'destination_canonical_service',
  'destination_canonical_revision',
  'destination_workload_namespace',
  'destination_principal',
  'destination_app',
  'destination_version',
  'destination_cluster',
  'request_protocol',
  'response_flags',
  'connection_security_policy',
  'source_region',
  'source_zone',
  'destination_region',
  'destination_zone',
] as const

export type TrafficLabels = Readonly<Record<(typeof trafficLabelNames)[number], string>>

/** All labels; what is not known is `unknown`. Localities are empty, which means absent, when neither end is known. */
export function trafficLabels(facts: ConnectionFacts, flag: ResponseFlag | '-'): TrafficLabels {
  const source = sourcePeer(facts)
  const destination = destinationPeer(facts)
  const place = (value: string | undefined): string =>
    source === undefined && destination === undefined ? '' : known(value)
  return {
    reporter: facts.reporter,
    ...sourceLabels(source, sourceIdentity(facts)),
    destination_service: known(facts.service?.hostname),
    destination_service_namespace: known(facts.service?.namespace),
    destination_service_name: known(facts.service?.name),
    destination_workload: known(destination?.workloadName),
    destination_canonical_service: known(destination?.canonicalService),
    destination_canonical_revision: known(destination?.revision),
    destination_workload_namespace: known(destination?.namespace),
    destination_principal: principalLabel(destinationIdentity(facts)),
    destination_app: known(destination?.app),
    destination_version: known(destination?.revision),
    destination_cluster: known(destination?.clusterId),
    request_protocol: 'tcp',
    response_flags: flag,
    connection_security_policy: facts.mutualTls ? 'mutual_tls' : 'unknown',
    source_region: place(source?.region),
    source_zone: place(source?.zone),
    destination_region: place(destination?.region),
    destination_zone: place(destination?.zone),
  }
}

export function sourceLabels(
  source: Peer | undefined,
  identity: Identity | undefined,
): Readonly<Record<(typeof sourceLabelNames)[number], string>> {
  return {
    source_workload: known(source?.workloadName),
    source_canonical_service: known(source?.canonicalService),
    source_canonical_revision: known(source?.revision),
    source_workload_namespace: known(source?.namespace),
    source_principal: principalLabel(identity),
    source_app: known(source?.app),
    source_version: known(source?.revision),
    source_cluster: known(source?.clusterId),
  }
}

export const known = (value: string | undefined): string => (value === undefined || value === '' ? 'unknown' : value)

const principalLabel = (identity: Identity | undefined): string =>
  identity === undefined ? 'unknown' : spiffeId(identity)
