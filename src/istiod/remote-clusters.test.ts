import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createGraph } from '../collections/index.ts'
import { createProblemLog } from '../config/index.ts'
import { createAmbientInputs } from '../discovery/ambient/index.ts'
import { createMetricsRegistry, silentLogging } from '../observability/index.ts'
import { followRemoteClusters } from './remote-clusters.ts'
import type { RemoteKubeconfig } from './remote-kubeconfigs.ts'

/** Nothing answers there. */
const kubeconfig = (token: string): string => `
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: ${token}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

test('a kubeconfig is used once however often it is told, and of several at once the last', {
  timeout: 20_000,
}, async () => {
  let present: readonly RemoteKubeconfig[] = []
  let changed = (): void => {}
  const read: string[] = []
  const log = {
    ...silentLogging().scope('test'),
    info: (message: string, fields?: Readonly<Record<string, unknown>>) => {
      if (message === 'a remote cluster is being read') read.push(String(fields?.secret))
    },
  }
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  await using clusters = followRemoteClusters({
    kubeconfigs: {
      synced: Promise.resolve(),
      list: () => present,
      subscribe(listener) {
        changed = listener
        return () => {}
      },
      [Symbol.asyncDispose]: async () => {},
    },
    localId: 'here',
    allowedOptions: [],
    timeoutMs: 1,
    userAgent: 'test',
    metrics: createMetricsRegistry(),
    systemNamespace: 'istio-system',
    watchNamespace: '',
    ignoredKinds: [],
    meshConfigName: 'istio',
    isMultiNetwork: false,
    inputs: createAmbientInputs(graph),
    problems: () => [],
    problemLog: createProblemLog(),
    inbound: () => {},
    log,
  })
  const tell = (...origins: readonly string[]): void => {
    for (const origin of origins) {
      present = [{ clusterId: 'there', origin, text: kubeconfig(origin) }]
      changed()
    }
  }
  tell('a', 'a', 'a')
  while (read.length === 0) await setImmediate()
  assert.deepEqual(read, ['a'])
  tell('b', 'c')
  while (read.length === 1) await setImmediate()
  assert.deepEqual(read, ['a', 'c'])
  assert.deepEqual(
    clusters.statuses().map(({ id, secretName }) => [id, secretName]),
    [['there', 'c']],
  )
})
