import assert from 'node:assert/strict'
import { lstat, mkdtemp, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import type { ClusterTrustBundleProjection } from 'kubernetes-types/core/v1.js'
import { writeDirectory } from './atomic-directory.ts'
import type { ClusterTrustBundle, PodSpec, Volume } from './types.ts'
import { type VolumeSources, volumeFiles } from './volume-files.ts'
import { containerMounts, prepareVolumes } from './volumes.ts'

const directory = await mkdtemp(join(tmpdir(), 'h-volumes-'))
after(() => rm(directory, { recursive: true }))

const file = (text: string) => ({ content: Buffer.from(text), mode: 0o640 })
const root = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----`
const bundle = (
  name: string,
  signerName: string | undefined,
  roots: readonly string[],
  labels: Readonly<Record<string, string>> = {},
): ClusterTrustBundle => ({
  apiVersion: 'certificates.k8s.io/v1beta1',
  kind: 'ClusterTrustBundle',
  metadata: { name, labels },
  spec: { ...(signerName === undefined ? {} : { signerName }), trustBundle: `a comment\n${roots.join('\n')}\n` },
})
const sources: VolumeSources = {
  pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'shop' }, spec: { containers: [] } },
  nodeName: 'n',
  hostIPs: [],
  podIPs: [],
  resources: { cpus: 1, memoryBytes: 1 },
  configMap: (name) =>
    name === 'cfg' ? { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: 'A', b: 'B' } } : undefined,
  secret: (name) =>
    name === 'key' ? { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { k: 'Sw==' } } : undefined,
  trustBundles: () => [
    bundle('example.com:mesh:one', 'example.com/mesh', [root('AAAA'), root('BBBB')], { team: 'a' }),
    bundle('example.com:mesh:two', 'example.com/mesh', [root('BBBB'), root('CCCC')]),
    bundle('other', undefined, [root('DDDD')]),
  ],
  token: async (audience) => `token for ${audience}`,
}
const textsOf = async (volume: Volume) =>
  Object.fromEntries(
    [...((await volumeFiles(volume, sources)) ?? [])].map(([path, { content }]) => [path, content.toString()]),
  )

test('a directory changes all at once, and only when its content changes', async () => {
  const path = join(directory, 'atomic')
  assert.equal(
    await writeDirectory(
      path,
      new Map([
        ['a', file('1')],
        ['sub/b', file('2')],
      ]),
    ),
    true,
  )
  const first = await readlink(join(path, '..data'))
  assert.equal(
    await writeDirectory(
      path,
      new Map([
        ['a', file('1')],
        ['sub/b', file('2')],
      ]),
    ),
    false,
  )
  assert.equal(await readlink(join(path, '..data')), first)
  assert.equal(await writeDirectory(path, new Map([['a', file('3')]])), true)
  assert.equal(await readFile(join(path, 'a'), 'utf8'), '3')
  await assert.rejects(lstat(join(path, 'sub')), { code: 'ENOENT' })
  assert.equal((await lstat(join(path, '..data', 'a'))).mode & 0o777, 0o640)
})

test('a config map gives its keys, or the items asked for', async () => {
  assert.deepEqual(await textsOf({ name: 'v', configMap: { name: 'cfg' } }), { a: 'A', b: 'B' })
  const items = [{ key: 'a', path: 'x/y' }]
  assert.deepEqual(await textsOf({ name: 'v', configMap: { name: 'cfg', items } }), { 'x/y': 'A' })
})

test('a projected volume joins its sources', async () => {
  const volume: Volume = {
    name: 'v',
    projected: {
      sources: [
        { serviceAccountToken: { audience: 'istio-ca', path: 'token' } },
        { secret: { name: 'key' } },
        { downwardAPI: { items: [{ path: 'ns', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
        { configMap: { name: 'none', optional: true } },
      ],
    },
  }
  assert.deepEqual(await textsOf(volume), { token: 'token for istio-ca', k: 'K', ns: 'shop' })
})

test('trust bundles are projected by name, or by signer and labels, each root once', async () => {
  const rootsOf = async (clusterTrustBundle: Omit<ClusterTrustBundleProjection, 'path'>) => {
    const projected = { sources: [{ clusterTrustBundle: { ...clusterTrustBundle, path: 'roots.pem' } }] }
    const { 'roots.pem': text = '' } = await textsOf({ name: 'v', projected })
    return [...text.matchAll(/-----\n(\w+)\n-----END CERTIFICATE-----\n/g)].map(([, body]) => body)
  }
  assert.deepEqual(await rootsOf({ name: 'other' }), ['DDDD'])
  const signerName = 'example.com/mesh'
  assert.deepEqual(await rootsOf({ signerName, labelSelector: {} }), ['AAAA', 'BBBB', 'CCCC'])
  assert.deepEqual(await rootsOf({ signerName, labelSelector: { matchLabels: { team: 'a' } } }), ['AAAA', 'BBBB'])
  await assert.rejects(rootsOf({ signerName }), /clustertrustbundle of example\.com\/mesh not found/)
  await assert.rejects(rootsOf({ name: 'none' }), /clustertrustbundle "none" not found/)
  assert.deepEqual(await rootsOf({ name: 'none', optional: true }), [])
})

test('a missing object and a path that leaves the volume are refused', async () => {
  await assert.rejects(textsOf({ name: 'v', secret: { secretName: 'none' } }), /secret "none" not found/)
  const items = [{ key: 'a', path: '../x' }]
  await assert.rejects(textsOf({ name: 'v', configMap: { name: 'cfg', items } }), /leaves its volume/)
})

test('volumes are made, and mounts find them with expanded sub paths', async () => {
  const spec: PodSpec = {
    containers: [],
    volumes: [
      { name: 'work', emptyDir: {} },
      { name: 'cfg', configMap: { name: 'cfg' } },
      { name: 'host', hostPath: { path: join(directory, 'made'), type: 'DirectoryOrCreate' } },
    ],
  }
  const paths = await prepareVolumes(spec, directory, sources)
  const mounts = await containerMounts(
    { name: 'c', volumeMounts: [{ name: 'host', mountPath: '/h', subPathExpr: '$(NODE)/x', readOnly: true }] },
    paths,
    new Map([['NODE', 'n1']]),
  )
  assert.deepEqual(mounts, [{ source: join(directory, 'made/n1/x'), target: '/h', readOnly: true }])
  await assert.rejects(
    containerMounts(
      { name: 'c', volumeMounts: [{ name: 'host', mountPath: '/h', subPath: '../x' }] },
      paths,
      new Map(),
    ),
    /leaves volume host/,
  )
})

test('a kind of volume that is not offered is named', async () => {
  const spec: PodSpec = { containers: [], volumes: [{ name: 'v', nfs: { server: 's', path: '/' } }] }
  await assert.rejects(prepareVolumes(spec, directory, sources), /volume v is of type nfs/)
})
