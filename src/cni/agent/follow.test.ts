// What the agent does with pods while the API server restarts and its token is replaced.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { createRunningPod, namespaceNamed, tokenOf } from '../../../test/support/cluster-objects.ts'
import { startApi } from '../../../test/support/embedded-api.ts'
import { type KubeObject, resources } from '../../api/index.ts'
import { clientOf, createKubeClient, inClusterConnection, isKubeError } from '../../kube/index.ts'
import { defaultEnablementSelectors } from '../eligibility.ts'
import { createEnrollmentController } from './controller.ts'
import { followNamespaces, followPods } from './follow.ts'

const role = (kind: string, rest: object): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name: 'istio-cni' },
  ...rest,
})

test('pods are followed over a restart of the API server with a token that ended meanwhile', {
  timeout: 60_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-follow-'))
  t.after(() => rmSync(dir, { recursive: true }))
  let api = await startApi(join(dir, 'api'))
  const port = api.addresses[0]?.port ?? 0
  let admin = await createKubeClient({ kubeconfig: api.kubeconfig })
  const account = { namespace: 'istio-system', name: 'istio-cni' }
  await admin.create(resources.namespaces, namespaceNamed('istio-system'))
  await admin.create(resources.namespaces, namespaceNamed('shop', { 'istio.io/dataplane-mode': 'ambient' }))
  const agent = (name: string, ip: string): Promise<KubeObject> =>
    createRunningPod(admin, { ...account, name }, { ip, account: account.name })
  const [first, second] = [await agent('agent-1', '10.0.0.8'), await agent('agent-2', '10.0.0.9')]
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false }
  const rules = [{ apiGroups: [''], resources: ['pods', 'namespaces'], verbs: ['get', 'list', 'watch'] }]
  await admin.create({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' }, role('ClusterRole', { rules }))
  await admin.create(
    { ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' },
    role('ClusterRoleBinding', {
      roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name: 'istio-cni' },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    }),
  )
  const volume = join(dir, 'sa')
  mkdirSync(volume)
  const writeToken = async (pod: KubeObject): Promise<void> => {
    const audience = 'https://kubernetes.default.svc.cluster.local'
    writeFileSync(join(volume, 'token'), await tokenOf(admin, account, { audience, pod }))
  }
  writeFileSync(join(volume, 'ca.crt'), readFileSync(join(dir, 'api/pki/ca.crt')))
  await writeToken(first)
  const web = { namespace: 'shop', name: 'web' }
  await createRunningPod(admin, web, { ip: '10.0.0.2', account: 'web' })
  const gone = await createRunningPod(admin, { ...web, name: 'gone' }, { ip: '10.0.0.3', account: 'web' })

  const client = clientOf(
    inClusterConnection({ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) }, volume),
  )
  const done: string[] = []
  const looks = new Set<() => void>()
  const note = (what: string): void => {
    done.push(what)
    for (const look of looks) look()
  }
  const until = (what: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => void (done.includes(what) && resolve())
      looks.add(look)
      look()
    })
  const controller = createEnrollmentController({
    settings: { selectors: defaultEnablementSelectors, excludeNamespaces: [], systemNamespace: 'istio-system' },
    enrollment: {
      enroll: async ({ metadata }) => note(`enroll ${metadata?.name}`),
      unenroll: async ({ metadata }) => note(`unenroll ${metadata?.name} ${metadata?.uid}`),
      addToHostSet: async () => {},
      knows: () => false,
      restore: async () => {},
    },
    log: () => undefined,
  })
  const pods = client.informer<KubeObject>(resources.pods, { fieldSelector: 'spec.nodeName=node1' })
  const namespaces = client.informer<KubeObject>(resources.namespaces)
  t.after(async () => {
    for (const one of [pods, namespaces, controller]) await one[Symbol.asyncDispose]()
    await client.close()
    await admin.close()
    await api[Symbol.asyncDispose]()
  })
  await Promise.all([pods.synced, namespaces.synced])
  followPods(pods, controller, () => undefined)
  followNamespaces(namespaces, controller)
  await controller.start(pods.list() as Pod[], namespaces.list() as Namespace[])
  await Promise.all([until('enroll web'), until('enroll gone')])

  await api[Symbol.asyncDispose]()
  api = await startApi(join(dir, 'api'), port)
  // Writes over connections to the server that ended are not sent again.
  await admin.close()
  admin = await createKubeClient({ kubeconfig: api.kubeconfig })
  // The pod that the first token is bound to goes, and with it the token.
  await admin.delete(resources.pods, { ...account, name: 'agent-1' }, { gracePeriodSeconds: 0 })
  await admin.delete(resources.pods, { ...web, name: 'gone' }, { gracePeriodSeconds: 0 })
  await assert.rejects(client.get(resources.pods, web), (error) => isKubeError(error, 401))
  await writeToken(second)
  await until(`unenroll gone ${gone.metadata.uid}`)
  await createRunningPod(admin, { ...web, name: 'late' }, { ip: '10.0.0.4', account: 'web' })
  await until('enroll late')
  assert.deepEqual(
    done.filter((what) => what === 'enroll web'),
    ['enroll web'],
    'a pod that did not change is not captured again',
  )
})
