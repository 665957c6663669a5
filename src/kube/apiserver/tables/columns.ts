// The columns of the built-in kinds, in the order and with the names that kubectl users know.
import { ageColumn, type Column, column, type Loose, nameColumn } from './column.ts'
import { age } from './duration.ts'
import { networkColumns } from './network-columns.ts'
import { podColumns } from './pod-columns.ts'
import { workloadColumns } from './workload-columns.ts'

export const defaultColumns: readonly Column[] = [nameColumn, ageColumn]

function table(...columns: Column[]): readonly Column[] {
  return [nameColumn, ...columns]
}

const count = (value: Loose) => Object.keys(value ?? {}).length

export const builtinColumns: ReadonlyMap<string, readonly Column[]> = new Map([
  ['/Pod', podColumns],
  ...workloadColumns,
  ...networkColumns,
  [
    '/Namespace',
    table(
      column('Status', (o) => o.status?.phase ?? ''),
      ageColumn,
    ),
  ],
  [
    '/Node',
    table(
      column('Status', nodeStatus),
      column('Roles', nodeRoles),
      ageColumn,
      column('Version', (o) => o.status?.nodeInfo?.kubeletVersion ?? ''),
      column('Internal-IP', (o) => nodeAddress(o, 'InternalIP'), 1),
      column('External-IP', (o) => nodeAddress(o, 'ExternalIP'), 1),
      column('OS-Image', (o) => o.status?.nodeInfo?.osImage || '<unknown>', 1),
      column('Kernel-Version', (o) => o.status?.nodeInfo?.kernelVersion || '<unknown>', 1),
      column('Container-Runtime', (o) => o.status?.nodeInfo?.containerRuntimeVersion || '<unknown>', 1),
    ),
  ],
  [
    '/ConfigMap',
    table(
      column('Data', (o) => count(o.data) + count(o.binaryData), 0, 'integer'),
      ageColumn,
    ),
  ],
  [
    '/Secret',
    table(
      column('Type', (o) => o.type ?? ''),
      column('Data', (o) => count(o.data), 0, 'integer'),
      ageColumn,
    ),
  ],
  [
    '/ServiceAccount',
    table(
      column('Secrets', (o) => (o.secrets ?? []).length, 0, 'integer'),
      ageColumn,
    ),
  ],
  ['/Event', eventColumns()],
  ['events.k8s.io/Event', eventColumns()],
  [
    'coordination.k8s.io/Lease',
    table(
      column('Holder', (o) => o.spec?.holderIdentity ?? ''),
      ageColumn,
    ),
  ],
  ['rbac.authorization.k8s.io/Role', table(column('Created At', (o) => o.metadata.creationTimestamp))],
  ['rbac.authorization.k8s.io/ClusterRole', table(column('Created At', (o) => o.metadata.creationTimestamp))],
  ['rbac.authorization.k8s.io/RoleBinding', bindingColumns()],
  ['rbac.authorization.k8s.io/ClusterRoleBinding', bindingColumns()],
  ['apiextensions.k8s.io/CustomResourceDefinition', table(column('Created At', (o) => o.metadata.creationTimestamp))],
  [
    'certificates.k8s.io/CertificateSigningRequest',
    table(
      ageColumn,
      column('SignerName', (o) => o.spec?.signerName ?? ''),
      column('Requestor', (o) => o.spec?.username ?? ''),
      column('RequestedDuration', (o) =>
        o.spec?.expirationSeconds === undefined ? '<none>' : `${o.spec.expirationSeconds}s`,
      ),
      column('Condition', requestCondition),
    ),
  ],
  ['certificates.k8s.io/ClusterTrustBundle', table(column('SignerName', (o) => o.spec?.signerName ?? ''))],
  [
    'admissionregistration.k8s.io/MutatingWebhookConfiguration',
    table(
      column('Webhooks', (o) => (o.webhooks ?? []).length, 0, 'integer'),
      ageColumn,
    ),
  ],
  [
    'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
    table(
      column('Webhooks', (o) => (o.webhooks ?? []).length, 0, 'integer'),
      ageColumn,
    ),
  ],
  [
    'apiregistration.k8s.io/APIService',
    table(
      column('Service', () => 'Local'),
      column('Available', () => 'True'),
      ageColumn,
    ),
  ],
])

function bindingColumns(): readonly Column[] {
  const subjects = (kind: string) => (o: Loose) =>
    (o.subjects ?? [])
      .filter((subject: Loose) => subject.kind === kind)
      .map((subject: Loose) => (kind === 'ServiceAccount' ? `${subject.namespace}/${subject.name}` : subject.name))
      .join(', ')
  return table(
    column('Role', (o) => `${o.roleRef?.kind}/${o.roleRef?.name}`),
    ageColumn,
    column('Users', subjects('User'), 1),
    column('Groups', subjects('Group'), 1),
    column('ServiceAccounts', subjects('ServiceAccount'), 1),
  )
}

function eventColumns(): readonly Column[] {
  const target = (o: Loose) => {
    const object = o.involvedObject ?? o.regarding ?? {}
    const kind = String(object.kind ?? '').toLowerCase()
    return object.name ? `${kind}/${object.name}` : kind
  }
  const lastSeen = (o: Loose) =>
    o.series?.lastObservedTime ??
    o.lastTimestamp ??
    o.deprecatedLastTimestamp ??
    o.eventTime ??
    o.metadata.creationTimestamp
  const firstSeen = (o: Loose) =>
    o.firstTimestamp ?? o.deprecatedFirstTimestamp ?? o.eventTime ?? o.metadata.creationTimestamp
  return [
    column('Last Seen', (o, now) => age(lastSeen(o), now)),
    column('Type', (o) => o.type ?? ''),
    column('Reason', (o) => o.reason ?? ''),
    column('Object', target),
    column('Subobject', (o) => o.involvedObject?.fieldPath ?? '', 1),
    column(
      'Source',
      (o) => [o.source?.component ?? o.reportingComponent, o.source?.host].filter(Boolean).join(', '),
      1,
    ),
    column('Message', (o) => String(o.message ?? o.note ?? '').trim()),
    column('First Seen', (o, now) => age(firstSeen(o), now), 1),
    column('Count', (o) => o.series?.count ?? o.count ?? o.deprecatedCount ?? 1, 1, 'integer'),
    { ...nameColumn, priority: 1 },
  ]
}

function nodeStatus(node: Loose): string {
  const ready = (node.status?.conditions ?? []).find((condition: Loose) => condition.type === 'Ready')
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (node.spec?.unschedulable === true) words.push('SchedulingDisabled')
  return words.join(',')
}

function nodeRoles(node: Loose): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(node.metadata.labels ?? {})
    .filter((label) => label.startsWith(prefix))
    .map((label) => label.slice(prefix.length))
  return roles.length === 0 ? '<none>' : roles.sort().join(',')
}

function nodeAddress(node: Loose, type: string): string {
  return (node.status?.addresses ?? []).find((address: Loose) => address.type === type)?.address ?? '<none>'
}

function requestCondition(request: Loose): string {
  const types = (request.status?.conditions ?? []).map((condition: Loose) => condition.type)
  const words = types.length === 0 ? ['Pending'] : types
  if (request.status?.certificate) words.push('Issued')
  return words.join(',')
}
