// The WorkloadEntry of a proxy that registers itself: made from its WorkloadGroup and from what the proxy says.
import type { KubeObject, WorkloadEntry, WorkloadEntrySpec } from '../../api/index.ts'
import type { ProxyNode } from '../../xds/index.ts'

export interface WorkloadGroupSpec {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly template?: WorkloadEntrySpec
  readonly probe?: object
}

export type WorkloadGroup = KubeObject<WorkloadGroupSpec>

/** What is known of a proxy once its stream is open. */
export interface RegisteringProxy extends Pick<ProxyNode, 'proxyId' | 'namespace' | 'ips' | 'locality' | 'metadata'> {
  readonly identities: readonly string[]
}

export const annotations = {
  group: 'istio.io/autoRegistrationGroup',
  controller: 'istio.io/workloadController',
  connectedAt: 'istio.io/connectedAt',
  disconnectedAt: 'istio.io/disconnectedAt',
  healthChecks: 'proxy.istio.io/health-checks-enabled',
} as const

const tunnelLabel = 'networking.istio.io/tunnel'
const longestName = 253

/** `<group>-<ip>[-<network>]`. */
export function entryName(group: string, proxy: Pick<RegisteringProxy, 'ips' | 'metadata'>): string {
  const network = textOf(proxy.metadata.NETWORK)
  const name = [group, proxy.ips[0] ?? '', ...(network === '' ? [] : [network])].join('-').replaceAll(':', '-')
  // What tells entries apart is at the end. A name begins with a letter or digit.
  return name.slice(-longestName).replace(/^[^a-z0-9]+/, '')
}

/** Labels of the proxy count before those of the group, and these before those of its template. */
export function entryOfGroup(
  group: WorkloadGroup,
  proxy: RegisteringProxy,
  connection: { readonly controller: string; readonly connectedAt: string },
): WorkloadEntry {
  const { metadata = {}, template = {}, probe } = group.spec ?? {}
  const own = labelsOf(proxy.metadata.LABELS)
  // It is a label of pods; written as it is, with slashes, it would be none.
  delete own['istio-locality']
  const labels: Record<string, string> = { ...template.labels, ...metadata.labels, ...own }
  if (isTrue(proxy.metadata.ENABLE_HBONE)) labels[tunnelLabel] ??= 'http'
  const network = textOf(proxy.metadata.NETWORK) || template.network
  const locality = proxy.locality || template.locality
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'WorkloadEntry',
    metadata: {
      namespace: group.metadata.namespace ?? '',
      name: entryName(group.metadata.name, proxy),
      labels,
      annotations: {
        ...metadata.annotations,
        ...(probe === undefined ? {} : { [annotations.healthChecks]: 'true' }),
        [annotations.group]: group.metadata.name,
        [annotations.controller]: connection.controller,
        [annotations.connectedAt]: connection.connectedAt,
      },
      ownerReferences: [
        {
          apiVersion: group.apiVersion,
          kind: group.kind,
          name: group.metadata.name,
          uid: group.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: {
      ...template,
      address: proxy.ips[0] ?? '',
      labels,
      ...(network === undefined ? {} : { network }),
      ...(locality === undefined ? {} : { locality }),
    },
  }
}

/** Whether the annotation says so; entries without it are taken for healthy. */
export function hasHealthChecks(entry: Pick<WorkloadEntry, 'metadata'>): boolean {
  return entry.metadata.annotations?.[annotations.healthChecks] === 'true'
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isTrue(value: unknown): boolean {
  return value === true || value === 'true'
}

function labelsOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {}
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  )
}
