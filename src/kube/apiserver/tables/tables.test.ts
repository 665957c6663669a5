import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { shortDuration } from './duration.ts'
import { readJsonPath } from './json-path.ts'
import { tableOf } from './table.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

for (const [milliseconds, expected] of [
  [0, '0s'],
  [119 * second, '119s'],
  [2 * minute, '2m'],
  [3 * minute + 20 * second, '3m20s'],
  [10 * minute + 5 * second, '10m'],
  [3 * hour, '3h'],
  [7 * hour + 59 * minute, '7h59m'],
  [8 * hour + 59 * minute, '8h'],
  [48 * hour, '2d'],
  [3 * day + 5 * hour, '3d5h'],
  [100 * day, '100d'],
  [800 * day, '2y70d'],
  [-5 * second, '<invalid>'],
] as const) {
  test(`${milliseconds} ms is ${expected}`, () => {
    assert.equal(shortDuration(milliseconds), expected)
  })
}

const object = {
  spec: {
    hosts: ['a', 'b'],
    'dotted.name': 1,
    items: [
      { type: 'Ready', status: 'True' },
      { type: 'Other', status: 'False' },
    ],
  },
}
for (const [path, expected] of [
  ['.spec.hosts', [['a', 'b']]],
  ['.spec.hosts[0]', ['a']],
  ['.spec.hosts[*]', ['a', 'b']],
  ['.spec.hosts[-1]', ['b']],
  ['{.spec.hosts[1]}', ['b']],
  ['.spec.items[?(@.type=="Ready")].status', ['True']],
  ["$.spec.items[?(@.type!='Ready')].status", ['False']],
  ["$.spec['dotted.name']", [1]],
  ['.spec.dotted\\.name', [1]],
  ['.spec.absent.more', []],
  ['.spec..x', []],
] as const) {
  test(`the path ${path} reads ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(readJsonPath(object, path), expected)
  })
}

const now = new Date('2026-01-01T00:10:00Z')

function cells(group: string, kind: string, subject: Partial<KubeObject>): unknown[] {
  const definition = {
    group,
    version: 'v1',
    kind,
    plural: '',
    namespaced: true,
    listKind: '',
    singular: '',
    subresources: {},
  }
  const whole = {
    apiVersion: 'v1',
    kind,
    ...subject,
    metadata: { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z', ...subject.metadata },
  }
  const table = tableOf(
    { kind: definition, wanted: { metaVersion: 'v1' }, include: 'None', now },
    [whole as KubeObject],
    {},
  ) as {
    rows: { cells: unknown[] }[]
  }
  return table.rows[0]?.cells ?? []
}

const podSpec = { containers: [{ name: 'a' }, { name: 'b' }] }
for (const [name, subject, expected] of [
  ['a pod without status', { spec: podSpec, status: { phase: 'Pending' } }, ['0/2', 'Pending', '0']],
  [
    'a running pod',
    {
      spec: podSpec,
      status: {
        phase: 'Running',
        containerStatuses: [
          { name: 'a', ready: true, restartCount: 0, state: { running: {} } },
          {
            name: 'b',
            ready: false,
            restartCount: 2,
            state: { running: {} },
            lastState: { terminated: { finishedAt: '2026-01-01T00:09:00Z' } },
          },
        ],
      },
    },
    ['1/2', 'Running', '2 (60s ago)'],
  ],
  [
    'a pod whose container fails',
    {
      spec: podSpec,
      status: {
        phase: 'Running',
        containerStatuses: [{ name: 'a', state: { waiting: { reason: 'CrashLoopBackOff' } } }],
      },
    },
    ['0/2', 'CrashLoopBackOff', '0'],
  ],
  [
    'a pod in its init containers',
    {
      spec: { ...podSpec, initContainers: [{ name: 'i' }, { name: 'j' }] },
      status: {
        phase: 'Pending',
        initContainerStatuses: [
          { name: 'i', state: { terminated: { exitCode: 0 } } },
          { name: 'j', state: { running: {} } },
        ],
      },
    },
    ['0/2', 'Init:1/2', '0'],
  ],
  [
    'a pod that is going',
    { metadata: { name: 'x', deletionTimestamp: '2026-01-01T00:10:30Z' }, spec: podSpec, status: { phase: 'Running' } },
    ['0/2', 'Terminating', '0'],
  ],
] as const) {
  test(`${name} is shown as ${expected.join(' ')}`, () => {
    assert.deepEqual(cells('', 'Pod', subject as unknown as KubeObject).slice(1, 4), expected)
  })
}

test('a service shows ports, addresses and age', () => {
  const spec = {
    type: 'NodePort',
    clusterIP: '10.0.0.1',
    ports: [
      { port: 80, nodePort: 30080, protocol: 'TCP' },
      { port: 53, protocol: 'UDP' },
    ],
  }
  assert.deepEqual(cells('', 'Service', { spec }).slice(1, 6), [
    'NodePort',
    '10.0.0.1',
    '<none>',
    '80:30080/TCP,53/UDP',
    '10m',
  ])
})

test('a custom resource shows its printer columns', () => {
  const definition: KindDefinition = {
    group: 'x.io',
    version: 'v1',
    kind: 'X',
    plural: 'xs',
    namespaced: true,
    listKind: 'XList',
    singular: 'x',
    subresources: {},
    columns: [
      { name: 'Hosts', type: 'string', jsonPath: '.spec.hosts' },
      { name: 'Count', type: 'integer', jsonPath: '.spec.count' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
  }
  const subject: KubeObject = {
    apiVersion: 'x.io/v1',
    kind: 'X',
    metadata: { name: 'n', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { hosts: ['a', 'b'] },
  }
  const table = tableOf(
    { kind: definition, wanted: { metaVersion: 'v1' }, include: 'Metadata', now },
    [subject],
    {},
  ) as {
    rows: { cells: unknown[] }[]
    columnDefinitions: { name: string }[]
  }
  assert.deepEqual(
    table.columnDefinitions.map((column) => column.name),
    ['Name', 'Hosts', 'Count', 'Age'],
  )
  assert.deepEqual(table.rows[0]?.cells, ['n', '["a","b"]', null, '10m'])
})
