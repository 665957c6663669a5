// Who a client says it is: node id and metadata of the first request.
import { isIP } from 'node:net'
import { status } from '@grpc/grpc-js'
import type { core } from '../../proto/index.ts'
import { StreamError } from './stream-error.ts'

export const nodeTypes = ['sidecar', 'router', 'waypoint', 'ztunnel', 'agentgateway'] as const
export type NodeType = (typeof nodeTypes)[number]

export interface ProxyNode {
  /** The node id as sent. */
  readonly id: string
  /** `debug`: no proxy but a person's tool, which asks one-shot types alone. */
  readonly type: NodeType | 'debug'
  readonly ips: readonly string[]
  /** `<pod>.<namespace>` for pods. */
  readonly proxyId: string
  /** The namespace the proxy belongs to; empty when it doesn't say. */
  readonly namespace: string
  /** `region/zone/subzone` as far as it says; empty when it doesn't. */
  readonly locality: string
  readonly metadata: Readonly<Record<string, unknown>>
}

const mostNodeLength = 1024 * 1024

/** Reads `<type>~<ip>~<id>~<dns domain>`. Throws a StreamError INVALID_ARGUMENT that says what is wrong. */
export function parseNode(node: core.Node | undefined, mayDebug = false): ProxyNode {
  if (node === undefined || node.id === '') throw invalid('missing node information')
  const parts = node.id.split('~')
  if (parts.length !== 4) throw invalid(`missing parts in the service node ${JSON.stringify(node.id)}`)
  const [typeText = '', ip = '', proxyId = '', domain = ''] = parts
  const type = mayDebug && typeText === 'debug' ? 'debug' : nodeTypes.find((name) => name === typeText)
  if (type === undefined) {
    throw invalid(
      `invalid node type (valid types: ${nodeTypes.join(', ')}) in the service node ${JSON.stringify(node.id)}`,
    )
  }
  const metadata: Readonly<Record<string, unknown>> = node.metadata ?? {}
  // It is held as long as the stream.
  if (JSON.stringify(metadata).length + node.id.length > mostNodeLength) {
    throw invalid(`the node id and metadata take more than ${mostNodeLength} characters`)
  }
  const instanceIps = textOf(metadata, 'INSTANCE_IPS').split(',')
  const ips = instanceIps.every((text) => isIP(text) !== 0) ? instanceIps : [ip]
  if (!ips.every((text) => isIP(text) !== 0)) throw invalid('no valid IP address in the service node id or metadata')
  const namespace = namespaceOf(metadata, domain)
  return { id: node.id, type, ips, proxyId, namespace, locality: localityOf(node), metadata }
}

function localityOf({ locality }: core.Node): string {
  const { region = '', zone = '', subZone = '' } = locality ?? {}
  return [region, zone, subZone].join('/').replace(/\/+$/, '')
}

function namespaceOf(metadata: Readonly<Record<string, unknown>>, domain: string): string {
  const named = textOf(metadata, 'NAMESPACE')
  if (named !== '') return named
  const dot = domain.indexOf('.')
  return dot === -1 ? '' : domain.slice(0, dot)
}

/** The node as one of the cluster that its CLUSTER_ID is an alias of, if it is one. */
export function withoutAlias(node: ProxyNode, clusterAliases: ReadonlyMap<string, string>): ProxyNode {
  const cluster = clusterAliases.get(textOf(node.metadata, 'CLUSTER_ID'))
  return cluster === undefined ? node : { ...node, metadata: { ...node.metadata, CLUSTER_ID: cluster } }
}

/**
 * Whether one of the verified identities may speak for the node: same namespace and service account, where the node claims them.
 * Throws a StreamError PERMISSION_DENIED when there is none.
 */
export function authorizeNode(node: Pick<ProxyNode, 'namespace' | 'metadata'>, identities: readonly string[]): void {
  const serviceAccount = textOf(node.metadata, 'SERVICE_ACCOUNT')
  for (const identity of identities) {
    const match = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(identity)
    if (match === null) continue
    const [, , namespace, account] = match
    if (node.namespace !== '' && node.namespace !== namespace) continue
    if (serviceAccount !== '' && serviceAccount !== account) continue
    return
  }
  throw new StreamError(
    status.PERMISSION_DENIED,
    `authorization failed: no identities ([${identities.join(' ')}]) matched ${node.namespace}/${serviceAccount}`,
  )
}

export function textOf(metadata: Readonly<Record<string, unknown>>, key: string): string {
  const value = metadata[key]
  return typeof value === 'string' ? value : ''
}

function invalid(message: string): StreamError {
  return new StreamError(status.INVALID_ARGUMENT, message)
}
