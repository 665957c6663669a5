import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject, Resource } from '../api/index.ts'
import type { KubeClient, ObjectChange } from '../kube/index.ts'
import { silentLogging } from '../observability/index.ts'
import { distributeTrustBundle, trustBundleName, trustBundleResource } from './trust-bundle.ts'

const group = 'certificates.k8s.io'

/** A server with one collection. */
function server(versions: readonly string[]) {
  const objects = new Map<string, KubeObject>()
  const listeners = new Set<(changes: readonly ObjectChange<KubeObject>[]) => void>()
  let written = Promise.withResolvers<KubeObject>()
  const put = (object: KubeObject): KubeObject => {
    objects.set(object.metadata.name, object)
    written.resolve(object)
    written = Promise.withResolvers()
    for (const listener of listeners) listener([{ kind: 'added', object }])
    return object
  }
  const client = {
    resolve: async (apiVersion: string, kind: string): Promise<Resource | undefined> => {
      const [, version = ''] = apiVersion.split('/')
      return versions.includes(version)
        ? { group, version, kind, plural: 'clustertrustbundles', namespaced: false }
        : undefined
    },
    create: async (_: Resource, object: KubeObject) => put(object),
    patch: async (_: Resource, { name }: { name: string }, { body }: { body: object }) =>
      put({ ...(objects.get(name) as KubeObject), ...body }),
    informer: () => ({
      synced: Promise.resolve(),
      get: ({ name }: { name: string }) => objects.get(name),
      list: () => [...objects.values()],
      subscribe(listener: (changes: readonly ObjectChange<KubeObject>[]) => void) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      [Symbol.asyncDispose]: async () => {},
    }),
  }
  return { client: client as unknown as KubeClient, put, nextWrite: () => written.promise }
}

test('the newest version that the server knows is used, if it knows any', async () => {
  assert.equal((await trustBundleResource(server(['v1beta1', 'v1alpha1']).client))?.version, 'v1beta1')
  assert.equal(await trustBundleResource(server([]).client), undefined)
})

test('the bundle is written, follows the authority, and is put right when somebody changes it', async () => {
  const { client, put, nextWrite } = server(['v1beta1'])
  const resource = await trustBundleResource(client)
  assert.ok(resource)
  let changed = (): void => {}
  const authority = {
    rootBundle: 'one',
    subscribe(listener: () => void) {
      changed = listener
      return () => {}
    },
  }
  const stop = new AbortController()
  const created = nextWrite()
  const running = distributeTrustBundle(client, resource, authority, silentLogging().scope('test'), stop.signal)
  const { apiVersion, metadata, spec } = await created
  assert.deepEqual([apiVersion, metadata.name], [`${group}/v1beta1`, trustBundleName])
  assert.deepEqual(spec, { signerName: 'istio.io/istiod-ca', trustBundle: 'one' })
  const followed = nextWrite()
  authority.rootBundle = 'two'
  changed()
  assert.deepEqual((await followed).spec, { signerName: 'istio.io/istiod-ca', trustBundle: 'two' })
  put({
    apiVersion,
    kind: 'ClusterTrustBundle',
    metadata,
    spec: { signerName: 'istio.io/istiod-ca', trustBundle: 'x' },
  })
  assert.deepEqual((await nextWrite()).spec, { signerName: 'istio.io/istiod-ca', trustBundle: 'two' })
  stop.abort()
  await running
})
