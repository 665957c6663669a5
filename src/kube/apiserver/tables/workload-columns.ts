// The columns of the kinds that run pods.
import { ageColumn, type Column, column, type Loose, nameColumn } from './column.ts'
import { shortDuration } from './duration.ts'

const containersOf = (object: Loose): Loose[] => object.spec?.template?.spec?.containers ?? []
const names = column(
  'Containers',
  (object) =>
    containersOf(object)
      .map((container) => container.name)
      .join(','),
  1,
)
const images = column(
  'Images',
  (object) =>
    containersOf(object)
      .map((container) => container.image)
      .join(','),
  1,
)
const selector = column('Selector', (object) => selectorText(object.spec?.selector), 1)

function number(name: string, value: (object: Loose) => unknown): Column {
  return column(name, (object) => value(object) ?? 0, 0, 'integer')
}

export const workloadColumns: readonly (readonly [string, readonly Column[]])[] = [
  [
    'apps/Deployment',
    [
      nameColumn,
      column('Ready', (o) => `${o.status?.readyReplicas ?? 0}/${o.spec?.replicas ?? 1}`),
      number('Up-to-date', (o) => o.status?.updatedReplicas),
      number('Available', (o) => o.status?.availableReplicas),
      ageColumn,
      names,
      images,
      selector,
    ],
  ],
  [
    'apps/ReplicaSet',
    [
      nameColumn,
      number('Desired', (o) => o.spec?.replicas ?? 1),
      number('Current', (o) => o.status?.replicas),
      number('Ready', (o) => o.status?.readyReplicas),
      ageColumn,
      names,
      images,
      selector,
    ],
  ],
  [
    'apps/StatefulSet',
    [
      nameColumn,
      column('Ready', (o) => `${o.status?.readyReplicas ?? 0}/${o.spec?.replicas ?? 1}`),
      ageColumn,
      names,
      images,
    ],
  ],
  [
    'apps/DaemonSet',
    [
      nameColumn,
      number('Desired', (o) => o.status?.desiredNumberScheduled),
      number('Current', (o) => o.status?.currentNumberScheduled),
      number('Ready', (o) => o.status?.numberReady),
      number('Up-to-date', (o) => o.status?.updatedNumberScheduled),
      number('Available', (o) => o.status?.numberAvailable),
      column('Node Selector', (o) => labelsText(o.spec?.template?.spec?.nodeSelector)),
      ageColumn,
      names,
      images,
      selector,
    ],
  ],
  [
    'batch/Job',
    [
      nameColumn,
      column('Status', jobStatus),
      column('Completions', (o) => `${o.status?.succeeded ?? 0}/${o.spec?.completions ?? 1}`),
      column('Duration', jobDuration),
      ageColumn,
      names,
      images,
      selector,
    ],
  ],
  [
    'batch/CronJob',
    [
      nameColumn,
      column('Schedule', (o) => o.spec?.schedule ?? ''),
      column('Timezone', (o) => o.spec?.timeZone ?? '<none>'),
      column('Suspend', (o) => (o.spec?.suspend === true ? 'True' : 'False')),
      number('Active', (o) => (o.status?.active ?? []).length),
      ageColumn,
    ],
  ],
]

function jobStatus(job: Loose): string {
  const isTrue = (type: string) =>
    (job.status?.conditions ?? []).some((one: Loose) => one.type === type && one.status === 'True')
  if (isTrue('Complete')) return 'Complete'
  if (isTrue('Failed')) return 'Failed'
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating'
  if (isTrue('Suspended')) return 'Suspended'
  return 'Running'
}

function jobDuration(job: Loose, now: Date): string {
  const start = Date.parse(job.status?.startTime ?? '')
  if (Number.isNaN(start)) return ''
  const end = Date.parse(job.status?.completionTime ?? '')
  return shortDuration((Number.isNaN(end) ? now.getTime() : end) - start)
}

export function labelsText(labels: Loose): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? '<none>' : pairs.sort().join(',')
}

export function selectorText(selector: Loose): string {
  if (selector === undefined || selector === null) return '<none>'
  const words = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const list = [...values].sort().join(',')
    if (operator === 'Exists') words.push(key)
    else if (operator === 'DoesNotExist') words.push(`!${key}`)
    else words.push(`${key} ${operator === 'In' ? 'in' : 'notin'} (${list})`)
  }
  return words.length === 0 ? '<none>' : words.sort().join(',')
}
