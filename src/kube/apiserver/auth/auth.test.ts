import 'reflect-metadata'
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { after, test } from 'node:test'
import * as x509 from '@peculiar/x509'
import { createRemoteJWKSet, customFetch, decodeJwt, jwtVerify } from 'jose'
import { makeCa } from '../../../../test/support/ca.ts'
import { startTestApi } from '../../../../test/support/embedded-api.ts'
import { type KubeObject, type Resource, resources } from '../../../api/index.ts'

const api = await startTestApi()
const { client } = api
after(() => api[Symbol.asyncDispose]())

const rbac = (kind: string, plural: string, namespaced: boolean): Resource => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced,
})
const roles = rbac('Role', 'roles', true)
const roleBindings = rbac('RoleBinding', 'rolebindings', true)
const clusterRoles = rbac('ClusterRole', 'clusterroles', false)
const clusterRoleBindings = rbac('ClusterRoleBinding', 'clusterrolebindings', false)
const signingRequests: Resource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
}
const reviews = (kind: string): Resource => ({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: false,
})

async function account(name: string): Promise<KubeObject> {
  return client.create(resources.serviceAccounts, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: 'default' },
  } as KubeObject)
}

async function tokenFor(name: string, spec: object = {}): Promise<string> {
  const answer = await client.createSubresource<{ status: { token: string } }>(
    resources.serviceAccounts,
    { namespace: 'default', name },
    'token',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
  )
  return answer.status.token
}

interface TokenReview extends KubeObject {
  readonly status: {
    authenticated?: boolean
    error?: string
    audiences?: string[]
    user?: { username?: string; groups?: string[]; extra?: Record<string, string[]> }
  }
}

function review(token: string, audiences?: string[]): Promise<TokenReview> {
  return client.create(resources.tokenReviews, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, ...(audiences === undefined ? {} : { audiences }) },
  } as KubeObject) as Promise<TokenReview>
}

const isForbidden = (error: { code?: number }): boolean => error.code === 403
const isUnauthorized = (error: { code?: number }): boolean => error.code === 401

test('a service account may do what its role says, by name and verb, and nothing else', async () => {
  await account('reader')
  const reader = api.as(await tokenFor('reader'))
  await assert.rejects(reader.list(resources.pods, { namespace: 'default' }), isForbidden)
  await client.create(roles, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'read', namespace: 'default' },
    rules: [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['configmaps'], resourceNames: ['mine'], verbs: ['get'] },
    ],
  } as KubeObject)
  await client.create(roleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'read', namespace: 'default' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'read' },
    subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace: 'default' }],
  } as KubeObject)
  assert.deepEqual((await reader.list(resources.pods, { namespace: 'default' })).items, [])
  await assert.rejects(reader.list(resources.pods, { namespace: 'kube-system' }), isForbidden)
  await assert.rejects(reader.delete(resources.pods, { namespace: 'default', name: 'x' }), isForbidden)
  assert.equal(await reader.get(resources.configMaps, { namespace: 'default', name: 'mine' }), undefined)
  await assert.rejects(reader.get(resources.configMaps, { namespace: 'default', name: 'other' }), isForbidden)
  await assert.rejects(reader.list(resources.configMaps, { namespace: 'default' }), isForbidden)
})

test('without credentials only health and version are served, and wrong ones are refused', async () => {
  const nobody = api.as()
  assert.equal((await nobody.request('/version')).status, 200)
  assert.equal((await nobody.request('/readyz')).status, 200)
  await assert.rejects(nobody.list(resources.pods, { namespace: 'default' }), isForbidden)
  assert.equal((await nobody.request('/api')).status, 403)
  await assert.rejects(api.as('x.y.z').list(resources.pods, { namespace: 'default' }), isUnauthorized)
})

test('a token for another audience is reviewed for that audience only', async () => {
  await account('mesh')
  const token = await tokenFor('mesh', { audiences: ['istio-ca'], expirationSeconds: 600 })
  await assert.rejects(
    api
      .as(token)
      .request('/api')
      .then((answer) => assert.equal(answer.status, 200)),
  )
  const good = await review(token, ['istio-ca', 'other'])
  assert.equal(good.status.authenticated, true)
  assert.deepEqual(good.status.audiences, ['istio-ca'])
  assert.equal(good.status.user?.username, 'system:serviceaccount:default:mesh')
  assert.deepEqual(good.status.user?.groups, [
    'system:serviceaccounts',
    'system:serviceaccounts:default',
    'system:authenticated',
  ])
  assert.equal((await review(token)).status.authenticated, false)
  assert.equal((await review(`${token.slice(0, -4)}AAAA`, ['istio-ca'])).status.authenticated, false)
  await assert.rejects(tokenFor('mesh', { expirationSeconds: 60 }), /may not specify a duration less than 10 minutes/)
})

test('a token bound to a pod names pod and node, and dies with the pod', async () => {
  await client.create(resources.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } } as KubeObject)
  await account('default')
  const pod = (await client.create(resources.pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { nodeName: 'n1', serviceAccountName: 'mesh', containers: [{ name: 'c', image: 'host' }] },
  } as KubeObject)) as KubeObject
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: pod.metadata.uid }
  const token = await tokenFor('mesh', { audiences: ['istio-ca'], boundObjectRef })
  const { user } = (await review(token, ['istio-ca'])).status
  assert.deepEqual(user?.extra?.['authentication.kubernetes.io/pod-name'], ['p'])
  assert.deepEqual(user?.extra?.['authentication.kubernetes.io/pod-uid'], [pod.metadata.uid])
  assert.deepEqual(user?.extra?.['authentication.kubernetes.io/node-name'], ['n1'])
  await assert.rejects(tokenFor('reader', { boundObjectRef }), /different serviceaccount name/)
  await assert.rejects(
    tokenFor('mesh', { boundObjectRef: { ...boundObjectRef, uid: 'other' } }),
    /does not match the UID/,
  )
  await client.delete(resources.pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
  const gone = await review(token, ['istio-ca'])
  assert.equal(gone.status.authenticated, false)
  assert.match(gone.status.error ?? '', /has been deleted/)
})

test('a secret that asks for it gets a token of its account, which ends with the secret', async () => {
  await client.create(resources.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'mesh', namespace: 'default', annotations: { 'kubernetes.io/service-account.name': 'mesh' } },
    type: 'kubernetes.io/service-account-token',
  } as KubeObject)
  const key = { namespace: 'default', name: 'mesh' }
  const encoded = await api.until(
    resources.secrets,
    key,
    (secret: (KubeObject & { data?: { token?: string } }) | undefined) => secret?.data?.token,
  )
  const mesh = api.as(Buffer.from(encoded, 'base64').toString())
  assert.equal((await mesh.request('/api')).status, 200)
  await client.delete(resources.secrets, key)
  assert.equal((await mesh.request('/api')).status, 401)
})

test('anyone with the published keys can verify a token', async () => {
  const token = await tokenFor('mesh')
  const discovery = (await (await client.request('/.well-known/openid-configuration')).json()) as {
    issuer: string
    jwks_uri: string
  }
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri), {
    [customFetch]: async (url: string) => client.request(new URL(url).pathname),
  })
  const { payload } = await jwtVerify(token, keys, { issuer: discovery.issuer, audience: discovery.issuer })
  assert.equal(payload.sub, 'system:serviceaccount:default:mesh')
  assert.equal((decodeJwt(token)['kubernetes.io'] as { namespace: string }).namespace, 'default')
})

test('nobody grants more than he has', async () => {
  await account('granter')
  const granter = api.as(await tokenFor('granter'))
  const binding = (name: string, role: string): KubeObject =>
    ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: 'granter', namespace: 'default' }],
    }) as KubeObject
  await client.create(clusterRoles, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'granter' },
    rules: [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
    ].map((rule) => (rule.verbs[0] === '*' ? { ...rule, verbs: ['create', 'update', 'get'] } : rule)),
  } as KubeObject)
  await client.create(clusterRoleBindings, binding('granter', 'granter'))
  const role = (name: string, verbs: string[]): KubeObject =>
    ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs }],
    }) as KubeObject
  await granter.create(clusterRoles, role('fine', ['get']))
  await assert.rejects(
    granter.create(clusterRoles, role('too-much', ['get', 'delete'])),
    /RBAC permissions not currently held/,
  )
  await assert.rejects(
    granter.create(clusterRoleBindings, binding('up', 'cluster-admin')),
    /RBAC permissions not currently held/,
  )
})

test('aggregated roles have the rules of those they select', async () => {
  await api.until(
    clusterRoles,
    { name: 'admin' },
    (role: (KubeObject & { rules?: { resources?: string[] }[] }) | undefined) =>
      role?.rules?.some(({ resources: names }) => names?.includes('rolebindings')) &&
      role.rules.some(({ resources: names }) => names?.includes('pods/log'))
        ? true
        : undefined,
  )
})

test('access reviews tell what a user may do', async () => {
  const ask = (spec: object) =>
    client.create(reviews('SubjectAccessReview'), {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: { name: '' },
      spec,
    } as KubeObject)
  const resourceAttributes = { verb: 'list', resource: 'pods', namespace: 'default' }
  const user = 'system:serviceaccount:default:reader'
  assert.equal(
    ((await ask({ user, resourceAttributes })) as KubeObject<unknown, { allowed: boolean }>).status?.allowed,
    true,
  )
  const other = await ask({ user, resourceAttributes: { ...resourceAttributes, namespace: 'kube-system' } })
  assert.equal((other as KubeObject<unknown, { allowed: boolean }>).status?.allowed, false)
  await assert.rejects(ask({ user }), /exactly one of/)
})

test('an approved certificate request is signed, and its certificate is who it says', async () => {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const make = async (name: string): Promise<string> => {
    const request = await x509.Pkcs10CertificateRequestGenerator.create(
      { name, keys, signingAlgorithm: algorithm },
      webcrypto,
    )
    return Buffer.from(request.toString('pem')).toString('base64')
  }
  const ask = async (name: string, subject: string): Promise<KubeObject> =>
    client.create(signingRequests, {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec: {
        request: await make(subject),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        expirationSeconds: 3600,
      },
    } as KubeObject)
  const approve = async (request: KubeObject): Promise<void> => {
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }]
    await client.replace(signingRequests, { ...request, status: { conditions } }, { subresource: 'approval' })
  }
  type Status = { certificate?: string; conditions?: { type: string; message?: string }[] }
  const created = await ask('jane', 'CN=jane, O=team')
  const sneaked = {
    ...created,
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }] },
  }
  await assert.rejects(client.replace(signingRequests, sneaked, { subresource: 'status' }), isForbidden)
  assert.equal((created.spec as { username?: string }).username, 'kubernetes-admin')
  await approve(created)
  const certificate = await api.until(
    signingRequests,
    { name: 'jane' },
    (request: KubeObject<unknown, Status> | undefined) => request?.status?.certificate,
  )
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  const jane = api.withCertificate(Buffer.from(certificate, 'base64').toString(), key)
  const self = (await jane.create(
    {
      group: 'authentication.k8s.io',
      version: 'v1',
      kind: 'SelfSubjectReview',
      plural: 'selfsubjectreviews',
      namespaced: false,
    },
    { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: { name: '' } },
  )) as KubeObject<unknown, { userInfo: { username: string; groups: string[] } }>
  assert.equal(self.status?.userInfo.username, 'jane')
  assert.deepEqual(self.status?.userInfo.groups, ['team', 'system:authenticated'])
  await assert.rejects(jane.list(resources.pods, { namespace: 'default' }), isForbidden)

  await approve(await ask('root', 'CN=root, O=system:masters'))
  const failed = await api.until(
    signingRequests,
    { name: 'root' },
    (request: KubeObject<unknown, Status> | undefined) =>
      request?.status?.conditions?.find(({ type }) => type === 'Failed'),
  )
  assert.match(failed.message ?? '', /system:masters/)
})

test('the roots of a signer are written by those who may attest for it', async () => {
  const name = 'example.com:mesh:roots'
  const { pem } = await makeCa({ name: 'mesh' })
  const bundle = (trustBundle: string, labels = {}): KubeObject => ({
    apiVersion: 'certificates.k8s.io/v1beta1',
    kind: 'ClusterTrustBundle',
    metadata: { name, labels },
    spec: { signerName: 'example.com/mesh', trustBundle },
  })
  const grant = async (role: string, rules: readonly object[]): Promise<void> => {
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
    const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name: 'attestor' }]
    const head = (kind: string) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata: { name: role } })
    await client.create(clusterRoles, { ...head('ClusterRole'), rules } as KubeObject)
    await client.create(clusterRoleBindings, { ...head('ClusterRoleBinding'), roleRef, subjects } as KubeObject)
  }
  await account('attestor')
  const attestor = api.as(await tokenFor('attestor'))
  const { clusterTrustBundles } = resources
  const group = 'certificates.k8s.io'
  await grant('write-bundles', [{ apiGroups: [group], resources: ['clustertrustbundles'], verbs: ['*'] }])
  await assert.rejects(attestor.create(clusterTrustBundles, bundle(pem)), /not permitted to attest/)
  await client.create(clusterTrustBundles, bundle(pem))
  await attestor.patch(clusterTrustBundles, { name }, { kind: 'merge', body: { metadata: { labels: { a: 'b' } } } })
  const more = { spec: { trustBundle: `${pem}\n${(await makeCa({ name: 'next' })).pem}` } }
  const write = () => attestor.patch(clusterTrustBundles, { name }, { kind: 'merge', body: more })
  await assert.rejects(write(), isForbidden)
  await grant('attest', [
    { apiGroups: [group], resources: ['signers'], resourceNames: ['example.com/*'], verbs: ['attest'] },
  ])
  await write()
  const alpha = { ...clusterTrustBundles, version: 'v1alpha1' }
  const shown = await client.get<ReturnType<typeof bundle>>(alpha, { name })
  assert.equal(shown?.apiVersion, `${group}/v1alpha1`)
  assert.deepEqual(shown.spec, { signerName: 'example.com/mesh', ...more.spec })
  await assert.rejects(
    attestor.patch(alpha, { name }, { kind: 'merge', body: { spec: { trustBundle: 'none' } } }),
    /at least one trust anchor/,
  )
  const found = await client.list(clusterTrustBundles, { fieldSelector: 'spec.signerName=example.com/mesh' })
  assert.deepEqual(
    found.items.map(({ metadata }) => metadata.name),
    [name],
  )
})
