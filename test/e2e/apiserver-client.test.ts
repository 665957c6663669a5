// The embedded API under @kubernetes/client-node, and what it keeps when it is killed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ApiException, AppsV1Api, CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from '@kubernetes/client-node'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'

let api: ApiProcess
let config: KubeConfig
before(async () => {
  api = await startApiProcess()
  config = new KubeConfig()
  config.loadFromFile(api.kubeconfig)
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

const namespace = 'default'

test('objects are created, read, replaced, listed and deleted', async () => {
  const core = config.makeApiClient(CoreV1Api)
  const created = await core.createNamespacedConfigMap({
    namespace,
    body: { metadata: { name: 'a' }, data: { x: '1' } },
  })
  await core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...created, data: { x: '2' } } })
  await assert.rejects(
    core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...created, data: { x: '3' } } }),
    (error) => error instanceof ApiException && error.code === 409,
  )
  const list = await core.listNamespacedConfigMap({ namespace })
  assert.equal(list.items.find((item) => item.metadata?.name === 'a')?.data?.x, '2')
  await core.deleteNamespacedConfigMap({ namespace, name: 'a' })
  await assert.rejects(
    core.readNamespacedConfigMap({ namespace, name: 'a' }),
    (error) => error instanceof ApiException && error.code === 404,
  )
})

test('a deployment is scaled through its subresource', async () => {
  const apps = config.makeApiClient(AppsV1Api)
  const labels = { app: 'd' }
  const containers = [{ name: 'c', image: 'host' }]
  const template = { metadata: { labels }, spec: { containers } }
  const body = { metadata: { name: 'd' }, spec: { selector: { matchLabels: labels }, template } }
  await apps.createNamespacedDeployment({ namespace, body })
  const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'd' })
  assert.equal(scale.spec?.replicas, 1)
  await apps.replaceNamespacedDeploymentScale({ namespace, name: 'd', body: { ...scale, spec: { replicas: 3 } } })
  assert.equal((await apps.readNamespacedDeployment({ namespace, name: 'd' })).spec?.replicas, 3)
})

test('an informer follows changes', async () => {
  const core = config.makeApiClient(CoreV1Api)
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  const informer = makeInformer<V1ConfigMap>(config, path, () => core.listNamespacedConfigMap({ namespace }))
  const events: string[] = []
  const deleted = new Promise<void>((resolve) => {
    informer.on('add', (object) => events.push(`add ${object.metadata?.name}`))
    informer.on('update', (object) => events.push(`update ${object.data?.x}`))
    informer.on('delete', (object) => {
      events.push(`delete ${object.metadata?.name}`)
      resolve()
    })
  })
  await informer.start()
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'i' }, data: { x: '1' } } })
  const { metadata } = await core.readNamespacedConfigMap({ namespace, name: 'i' })
  await core.replaceNamespacedConfigMap({
    namespace,
    name: 'i',
    body: { metadata: { ...metadata, name: 'i' }, data: { x: '2' } },
  })
  await core.deleteNamespacedConfigMap({ namespace, name: 'i' })
  await deleted
  await informer.stop()
  assert.deepEqual(events, ['add i', 'update 2', 'delete i'])
})

test('nothing that was acknowledged is lost when the process is killed', async () => {
  const core = config.makeApiClient(CoreV1Api)
  const acknowledged = new Map<string, string | undefined>()
  let next = 0
  const write = async (): Promise<void> => {
    for (;;) {
      next += 1
      const name = `k${next}`
      try {
        const created = await core.createNamespacedConfigMap({
          namespace,
          body: { metadata: { name }, data: { name } },
        })
        acknowledged.set(name, created.metadata?.resourceVersion)
        if (acknowledged.size === 300) void api.kill()
      } catch {
        // The process is gone: what was not answered may or may not be there.
        return
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, write))
  await api.kill()
  await api.start()
  const again = new KubeConfig()
  again.loadFromFile(api.kubeconfig)
  const list = await again.makeApiClient(CoreV1Api).listNamespacedConfigMap({ namespace })
  const found = new Map(list.items.map((item) => [item.metadata?.name, item.metadata?.resourceVersion]))
  for (const [name, version] of acknowledged) assert.equal(found.get(name), version, name)
  assert.ok(acknowledged.size >= 300)
  const highest = Math.max(...[...acknowledged.values()].map(Number))
  assert.ok(Number(list.metadata?.resourceVersion) >= highest)
})
