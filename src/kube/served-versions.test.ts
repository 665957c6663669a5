import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApi, type TestApi } from '../../test/support/embedded-api.ts'
import { type CustomResourceDefinition, type KubeObject, type Resource, resources } from '../api/index.ts'
import { errorOfResponse } from './errors.ts'
import { createKubeClient, isKubeError, type KubeClient } from './index.ts'
import { createServedVersions, inVersionOf } from './served-versions.ts'

const widgets: Resource = {
  group: 'shop.test',
  version: 'v3',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
  otherVersions: ['v2', 'v1'],
}

const key = (name: string) => ({ namespace: 'default', name })

const widget = (name: string, size = 1): KubeObject => ({
  apiVersion: 'shop.test/v3',
  kind: 'Widget',
  metadata: key(name),
  spec: { size },
})

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.test' },
  spec: {
    group: 'shop.test',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets' },
    versions: [
      {
        name: 'v1',
        storage: true,
        served: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        subresources: { status: {}, scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
      },
    ],
  },
}

describe('a client that has listed nothing, of a server that has a kind in another version only,', {
  timeout: 30_000,
}, () => {
  let api: TestApi
  before(async () => {
    api = await startTestApi()
    await api.client.create(resources.customResourceDefinitions, definition as unknown as KubeObject)
    await api.until(
      resources.customResourceDefinitions,
      { name: definition.metadata.name },
      (crd: CustomResourceDefinition | undefined) =>
        crd?.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') || undefined,
    )
    const stored = { ...widgets, version: 'v1' }
    for (const name of ['read', 'deleted', 'replaced', 'patched', 'applied', 'scaled']) {
      await api.client.create(stored, { ...widget(name), apiVersion: 'shop.test/v1' })
    }
  })
  after(() => api[Symbol.asyncDispose]())

  const works: readonly (readonly [string, (client: KubeClient) => Promise<unknown>, unknown])[] = [
    ['gets objects', (client) => client.get(widgets, key('read')), 'shop.test/v3 read 1'],
    ['gets nothing where there is no object', (client) => client.get(widgets, key('none')), undefined],
    ['creates objects', (client) => client.create(widgets, widget('created')), 'shop.test/v3 created 1'],
    ['replaces objects', (client) => replaced(client), 'shop.test/v3 replaced 2'],
    [
      'patches objects',
      (client) => client.patch(widgets, key('patched'), { kind: 'merge', body: { spec: { size: 2 } } }),
      'shop.test/v3 patched 2',
    ],
    [
      'applies objects',
      (client) =>
        client.patch(widgets, key('applied'), {
          kind: 'apply',
          body: widget('applied', 2),
          fieldManager: 'test',
          force: true,
        }),
      'shop.test/v3 applied 2',
    ],
    [
      'gets what is no object of the kind',
      (client) => client.get(widgets, key('scaled'), 'scale'),
      'autoscaling/v1 scaled undefined',
    ],
    ['deletes objects', (client) => client.delete(widgets, key('deleted')), true],
    ['deletes nothing where there is no object', (client) => client.delete(widgets, key('none')), false],
    [
      'lists objects',
      async (client) => (await client.list(widgets)).items.find(({ metadata }) => metadata.name === 'read'),
      'shop.test/v3 read 1',
    ],
  ]
  for (const [name, work, expected] of works) {
    test(`${name}, told in the version that it asks for`, async () => {
      const client = await createKubeClient({ kubeconfig: api.server.kubeconfig })
      try {
        assert.equal(told(await work(client)), expected)
      } finally {
        await client.close()
      }
    })
  }

  test('rejects what is written to a namespace that is not there', async () => {
    const client = await createKubeClient({ kubeconfig: api.server.kubeconfig })
    try {
      const nowhere = { ...widget('a'), metadata: { name: 'a', namespace: 'nowhere' } }
      await assert.rejects(
        client.create(widgets, nowhere),
        (error) => isKubeError(error, 404) && /namespaces "nowhere" not found/.test(error.message),
      )
    } finally {
      await client.close()
    }
  })
})

async function replaced(client: KubeClient): Promise<KubeObject> {
  const { metadata } = (await client.get(widgets, key('replaced'))) ?? widget('none')
  return client.replace(widgets, { ...widget('replaced', 2), metadata })
}

function told(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer
  const { apiVersion, metadata, spec } = answer as KubeObject<{ size?: number }>
  return `${apiVersion} ${metadata.name} ${spec?.size}`
}

const notServed = errorOfResponse('GET /', 404, '404 page not found\n')
const noObject = errorOfResponse(
  'GET /',
  404,
  JSON.stringify({ kind: 'Status', code: 404, reason: 'NotFound', details: { name: 'a' } }),
)

test('the version that was found is asked first, and the others when it is served no more', async () => {
  const versions = createServedVersions()
  const asked: string[] = []
  const ask = (served: string, first = versions.of(widgets)) =>
    versions.find(
      widgets,
      async ({ version }) => {
        asked.push(version)
        if (version !== served) throw notServed
        return version
      },
      first,
    )
  assert.equal(await ask('v2'), 'v2')
  assert.equal(await ask('v2'), 'v2')
  assert.equal(await ask('v3'), 'v3')
  assert.equal(await ask('v3'), 'v3')
  assert.deepEqual(asked, ['v3', 'v2', 'v2', 'v2', 'v3', 'v3'])
  await assert.rejects(ask('none'), notServed)
})

test('an object that is not there says that its version is served: no other one is asked', async () => {
  const versions = createServedVersions()
  const asked: string[] = []
  for (let times = 0; times < 2; times += 1) {
    const work = versions.find(
      widgets,
      async ({ version }) => {
        asked.push(version)
        throw version === 'v2' ? noObject : notServed
      },
      versions.of(widgets),
    )
    await assert.rejects(work, noObject)
  }
  assert.deepEqual(asked, ['v3', 'v2', 'v2'])
})

test('objects of other kinds and groups, and what is no object, keep their version', () => {
  for (const value of [
    { apiVersion: 'autoscaling/v1', kind: 'Scale' },
    { apiVersion: 'other.test/v1', kind: 'Widget' },
    { spec: {} },
    [{ op: 'remove', path: '/spec' }],
    undefined,
  ]) {
    assert.equal(inVersionOf(widgets, value), value)
  }
  assert.deepEqual(inVersionOf(widgets, { apiVersion: 'shop.test/v1', kind: 'Widget' }), {
    apiVersion: 'shop.test/v3',
    kind: 'Widget',
  })
})
