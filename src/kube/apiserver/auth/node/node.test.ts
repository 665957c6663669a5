// What a node may read and write, by its own certificate over the API.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startTestApi } from '../../../../../test/support/embedded-api.ts'
import { type KubeObject, type Resource, resources } from '../../../../api/index.ts'
import { isKubeError, type KubeClient, requestCertificate } from '../../../index.ts'

const api = await startTestApi()
const { client } = api
after(() => api[Symbol.asyncDispose]())

const reviews: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
}
const named = (kind: string, name: string, rest: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, ...(kind === 'Node' ? {} : { namespace: 'default' }) },
  ...rest,
})

async function asUser(commonName: string, organizations: readonly string[]): Promise<KubeClient> {
  const { certificate, key } = await requestCertificate(client, {
    name: 'test',
    subject: { commonName, organizations },
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['client auth'],
    approval: 'for the test',
  })
  return api.withCertificate(certificate, key)
}

function pod(name: string, nodeName: string): KubeObject {
  const env = [
    { name: 'A', valueFrom: { secretKeyRef: { name: `env-${nodeName}`, key: 'k', optional: true } } },
    { name: 'B', valueFrom: { configMapKeyRef: { name: `env-${nodeName}`, key: 'k', optional: true } } },
  ]
  const serviceAccountToken = { path: 'token', audience: 'mesh' }
  const volumes = [
    { name: 'files', secret: { secretName: `files-${nodeName}` } },
    { name: 'data', persistentVolumeClaim: { claimName: `data-${nodeName}` } },
    { name: 'mesh-token', projected: { sources: [{ serviceAccountToken }] } },
  ]
  const containers = [{ name: 'app', image: 'host', command: ['true'], env }]
  return named('Pod', name, { spec: { nodeName, serviceAccountName: `of-${nodeName}`, containers, volumes } })
}

const pods = new Map<string, KubeObject>()
for (const node of ['n1', 'n2']) {
  await client.create(resources.serviceAccounts, named('ServiceAccount', `of-${node}`))
  for (const name of [`env-${node}`, `files-${node}`, `unused-${node}`]) {
    await client.create(resources.secrets, named('Secret', name))
    await client.create(resources.configMaps, named('ConfigMap', name))
  }
  pods.set(node, await client.create(resources.pods, pod(`pod-${node}`, node)))
}
await client.create(resources.nodes, named('Node', 'n2'))
const n1 = await asUser('system:node:n1', ['system:nodes'])

const isForbidden = (error: unknown): boolean => isKubeError(error, 403)

async function isAllowed(request: Promise<unknown>): Promise<boolean> {
  try {
    await request
    return true
  } catch (error) {
    if (isForbidden(error)) return false
    throw error
  }
}

/** What the node is told when it asks whether it may, as `kubectl auth can-i` does. */
async function canI(user: KubeClient, resourceAttributes: object): Promise<boolean> {
  const answer = await user.create<KubeObject>(reviews, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: reviews.kind,
    metadata: { name: '' },
    spec: { resourceAttributes: { namespace: 'default', ...resourceAttributes } },
  })
  return (answer.status as { allowed: boolean }).allowed
}

describe('a node reads', () => {
  for (const [resource, name, expected] of [
    [resources.secrets, 'env-n1', true],
    [resources.secrets, 'files-n1', true],
    [resources.secrets, 'unused-n1', false],
    [resources.secrets, 'env-n2', false],
    [resources.secrets, 'files-n2', false],
    [resources.configMaps, 'env-n1', true],
    [resources.configMaps, 'files-n1', false],
    [resources.configMaps, 'env-n2', false],
    [resources.pods, 'pod-n1', true],
    [resources.pods, 'pod-n2', false],
    [resources.serviceAccounts, 'of-n1', false],
  ] as const) {
    const key = { namespace: 'default', name }
    test(`${resource.plural} ${name}: ${expected ? 'yes' : 'no'}, alone and as the one object of a list or watch`, async () => {
      assert.equal(await isAllowed(n1.get(resource, key)), expected)
      const options = { namespace: 'default', fieldSelector: `metadata.name=${name}` }
      assert.equal(await isAllowed(n1.list(resource, options)), expected)
      for (const verb of ['get', 'list', 'watch']) {
        assert.equal(await canI(n1, { verb, resource: resource.plural, name }), expected, verb)
      }
    })
  }

  test('no list of all secrets, config maps or pods, but of the pods bound to it', async () => {
    for (const resource of [resources.secrets, resources.configMaps, resources.pods]) {
      await assert.rejects(n1.list(resource, { namespace: 'default' }), isForbidden)
      await assert.rejects(n1.list(resource), isForbidden)
    }
    const { items } = await n1.list(resources.pods, { fieldSelector: 'spec.nodeName=n1' })
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ['pod-n1'],
    )
    await assert.rejects(n1.list(resources.pods, { fieldSelector: 'spec.nodeName=n2' }), isForbidden)
    await assert.rejects(n1.list(resources.pods, { fieldSelector: 'spec.nodeName!=n1' }), isForbidden)
    const own = { rawSelector: 'spec.nodeName=n1' }
    const listed = { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }] }
    const wide = { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n1', 'n2'] }] }
    for (const [fieldSelector, expected] of [
      [own, true],
      [listed, true],
      [wide, false],
      [undefined, false],
    ] as const) {
      assert.equal(await canI(n1, { verb: 'list', resource: 'pods', namespace: '', fieldSelector }), expected)
    }
  })

  test('its own Node and Lease, services; not other nodes, leases, workloads or roles', async () => {
    assert.equal(await n1.get(resources.nodes, { name: 'n1' }), undefined)
    await assert.rejects(n1.get(resources.nodes, { name: 'n2' }), isForbidden)
    await assert.rejects(n1.list(resources.nodes), isForbidden)
    await n1.list(resources.services)
    assert.equal(await n1.get(resources.leases, { namespace: 'kube-node-lease', name: 'n1' }), undefined)
    await assert.rejects(n1.get(resources.leases, { namespace: 'kube-node-lease', name: 'n2' }), isForbidden)
    await assert.rejects(n1.get(resources.leases, { namespace: 'default', name: 'n1' }), isForbidden)
    for (const resource of [resources.deployments, resources.namespaces, resources.endpointSlices]) {
      await assert.rejects(n1.list(resource), isForbidden)
    }
  })

  test('claims of its pods and the volumes behind them', async () => {
    const attributes = { verb: 'get', resource: 'persistentvolumeclaims' }
    assert.equal(await canI(n1, { ...attributes, name: 'data-n1' }), true)
    assert.equal(await canI(n1, { ...attributes, name: 'data-n2' }), false)
    assert.equal(await canI(n1, { ...attributes, verb: 'list', name: 'data-n1' }), false)
    assert.equal(await canI(n1, { verb: 'get', resource: 'persistentvolumes', name: 'any', namespace: '' }), false)
  })

  test('what a pod refers to from when it is bound until it is gone', async () => {
    const key = { namespace: 'default', name: 'passing' }
    await client.create(resources.secrets, named('Secret', 'passing'))
    const spec = {
      containers: [{ name: 'app', image: 'host', envFrom: [{ secretRef: { name: 'passing' } }] }],
      serviceAccountName: 'of-n1',
    }
    await client.create(resources.pods, named('Pod', 'passing', { spec }))
    assert.equal(await isAllowed(n1.get(resources.secrets, key)), false)
    const target = { apiVersion: 'v1', kind: 'Node', name: 'n1' }
    await client.createSubresource(resources.pods, key, 'binding', named('Binding', 'passing', { target }))
    assert.equal(await isAllowed(n1.get(resources.secrets, key)), true)
    await client.delete(resources.pods, key, { gracePeriodSeconds: 0 })
    assert.equal(await isAllowed(n1.get(resources.secrets, key)), false)
  })

  test('nothing when the name, the group or the certificate’s organization is missing', async () => {
    for (const [user, groups] of [
      ['system:node:n1', []],
      ['n1', ['system:nodes']],
      ['system:node:', ['system:nodes']],
    ] as const) {
      const other = await asUser(user, groups)
      await assert.rejects(other.get(resources.secrets, { namespace: 'default', name: 'env-n1' }), isForbidden, user)
      await assert.rejects(other.get(resources.nodes, { name: 'n1' }), isForbidden, user)
    }
  })
})

describe('a node writes', () => {
  test('its own Node, without labels that tell where pods may run, taints or owners', async () => {
    await assert.rejects(n1.create(resources.nodes, named('Node', 'n3')), isForbidden)
    const own = await n1.create(resources.nodes, named('Node', 'n1'))
    const patch = (name: string, body: object, subresource?: string) =>
      n1.patch(
        resources.nodes,
        { name },
        { kind: 'merge', body },
        subresource === undefined ? undefined : { subresource },
      )
    await patch('n1', { metadata: { labels: { 'topology.kubernetes.io/zone': 'a', mine: 'yes' } } })
    await patch('n1', { status: { capacity: { cpu: '1' } } }, 'status')
    for (const [what, body] of [
      ['a restricted label', { metadata: { labels: { 'node-restriction.kubernetes.io/tier': 'secret' } } }],
      ['a role', { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }],
      ['taints', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }],
      ['an owner', { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] } }],
    ] as const) {
      await assert.rejects(patch('n1', body), isForbidden, what)
    }
    await assert.rejects(patch('n2', { metadata: { labels: { mine: 'yes' } } }), isForbidden)
    await assert.rejects(patch('n2', { status: { capacity: { cpu: '1' } } }, 'status'), isForbidden)
    await assert.rejects(n1.delete(resources.nodes, { name: own.metadata.name }), isForbidden)
  })

  test('its own Lease', async () => {
    const lease = (name: string, namespace = 'kube-node-lease'): KubeObject => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace },
      spec: { holderIdentity: 'n1' },
    })
    await assert.rejects(n1.create(resources.leases, lease('n2')), isForbidden)
    await assert.rejects(n1.create(resources.leases, lease('n1', 'default')), isForbidden)
    await n1.replace(resources.leases, await n1.create(resources.leases, lease('n1')))
    await assert.rejects(n1.replace(resources.leases, lease('n2')), isForbidden)
  })

  test('the status of its pods, not their labels, and deletes them', async () => {
    const status = (name: string, body: object) =>
      n1.patch(resources.pods, { namespace: 'default', name }, { kind: 'merge', body }, { subresource: 'status' })
    await status('pod-n1', { status: { phase: 'Running' } })
    await assert.rejects(status('pod-n1', { metadata: { labels: { app: 'other' } } }), isForbidden)
    await assert.rejects(status('pod-n2', { status: { phase: 'Failed' } }), isForbidden)
    const key = { namespace: 'default', name: 'pod-n2' }
    await assert.rejects(n1.delete(resources.pods, key), isForbidden)
    await assert.rejects(n1.patch(resources.pods, key, { kind: 'merge', body: { metadata: {} } }), isForbidden)
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: key }
    const { podDisruptionBudgets: budgets } = resources
    const budget = await client.create(budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'all', namespace: 'default' },
      spec: { selector: {}, maxUnavailable: 1 },
    })
    const counted = { status: { disruptionsAllowed: 1 } }
    const all = { namespace: 'default', name: budget.metadata.name }
    await client.patch(budgets, all, { kind: 'merge', body: counted }, { subresource: 'status' })
    await assert.rejects(n1.createSubresource(resources.pods, key, 'eviction', eviction), isForbidden)
    const { status: left } = (await client.get(budgets, all)) ?? {}
    assert.equal(
      (left as { disruptionsAllowed: number }).disruptionsAllowed,
      1,
      'a refused eviction spends no disruption',
    )
    await client.delete(budgets, all)
    await client.create(resources.pods, pod('short', 'n1'))
    await n1.delete(resources.pods, { namespace: 'default', name: 'short' }, { gracePeriodSeconds: 0 })
  })

  test('no pods but mirrors of its own, which give it nothing', async () => {
    const mirror = (spec: object, annotations: object = { 'kubernetes.io/config.mirror': 'x' }): KubeObject => {
      const containers = [{ name: 'app', image: 'host' }]
      const made = named('Pod', 'mirror', { spec: { nodeName: 'n1', containers, ...spec } })
      return { ...made, metadata: { ...made.metadata, annotations: { ...annotations } } }
    }
    const volumes = [{ name: 'v', secret: { secretName: 'env-n2' } }]
    for (const refused of [
      mirror({}, {}),
      mirror({ nodeName: 'n2' }),
      mirror({ volumes }),
      mirror({ serviceAccountName: 'of-n2' }),
    ]) {
      await assert.rejects(n1.create(resources.pods, refused), isForbidden)
    }
    await n1.create(resources.pods, mirror({}))
    const key = { namespace: 'default', name: 'mirror' }
    assert.equal((await n1.get(resources.pods, key))?.metadata.name, 'mirror')
    for (const [name, value] of [
      ['mirror', null],
      ['pod-n1', 'x'],
    ] as const) {
      const body = { metadata: { annotations: { 'kubernetes.io/config.mirror': value } } }
      const patched = n1.patch(resources.pods, { ...key, name }, { kind: 'merge', body }, { subresource: 'status' })
      await assert.rejects(patched, isForbidden, name)
    }
  })

  test('requests of certificates in its own name only', async () => {
    const ask = (commonName: string, signerName: string) =>
      requestCertificate(n1, {
        name: 'asked',
        subject: { commonName, organizations: ['system:nodes'] },
        names: { dns: ['n1'] },
        signerName,
        usages: ['server auth'],
        timeoutMs: 1,
      })
    for (const signer of ['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client-kubelet']) {
      await assert.rejects(ask('system:node:n2', signer), isForbidden)
      await assert.rejects(ask('system:node:n1', signer), { reason: 'Timeout' })
    }
  })
})

describe('a node gets tokens', () => {
  const ask = (account: string, spec: object) =>
    n1.createSubresource(resources.serviceAccounts, { namespace: 'default', name: account }, 'token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    })
  const bound = (node: string, changes: object = {}) => {
    const { name, uid } = pods.get(node)?.metadata ?? { name: '' }
    return { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid, ...changes } }
  }

  test('of the accounts of its pods, bound to the pod, for the audiences of its volumes', async () => {
    await ask('of-n1', bound('n1'))
    await ask('of-n1', { ...bound('n1'), audiences: ['mesh'] })
  })

  for (const [what, account, spec] of [
    ['of an account that none of its pods has', 'of-n2', bound('n2')],
    ['bound to nothing', 'of-n1', {}],
    ['bound to a Secret', 'of-n1', bound('n1', { kind: 'Secret', name: 'env-n1', uid: undefined })],
    ['bound to a pod without its UID', 'of-n1', bound('n1', { uid: undefined })],
    ['for another audience', 'of-n1', { ...bound('n1'), audiences: ['vault'] }],
    ['for another audience besides', 'of-n1', { ...bound('n1'), audiences: ['mesh', 'vault'] }],
  ] as const) {
    test(`none ${what}`, () => assert.rejects(ask(account, spec), isForbidden))
  }

  test('none bound to a pod of the same account on another node', async () => {
    const elsewhere = pod('same-account', 'n2')
    Object.assign(elsewhere.spec as object, { serviceAccountName: 'of-n1' })
    const { name, uid } = (await client.create(resources.pods, elsewhere)).metadata
    await assert.rejects(ask('of-n1', bound('n1', { name, uid })), isForbidden)
  })
})

test('others in the cluster are not concerned by what limits nodes', async () => {
  const label = { metadata: { labels: { 'node-restriction.kubernetes.io/tier': 'a' } } }
  await client.patch(resources.nodes, { name: 'n2' }, { kind: 'merge', body: label })
  const { status } = await client.createSubresource<{ status: { token: string } }>(
    resources.serviceAccounts,
    { namespace: 'default', name: 'of-n2' },
    'token',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['vault'] } },
  )
  assert.ok(status.token.length > 0)
})
