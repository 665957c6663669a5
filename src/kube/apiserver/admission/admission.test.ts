import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { startTestApi } from '../../../../test/support/embedded-api.ts'
import { type KubeObject, type Resource, resources } from '../../../api/index.ts'
import { createAuthority, createLeaf } from '../auth/certificates.ts'

interface Review {
  readonly request: {
    readonly uid: string
    readonly operation: string
    readonly name: string
    readonly dryRun: boolean
    readonly userInfo: { readonly username: string }
    readonly object: KubeObject | null
    readonly oldObject: KubeObject | null
  }
}

type Answer = { allowed: boolean; patch?: unknown[]; status?: object; warnings?: string[] }

const api = await startTestApi()
const { client } = api
after(() => api[Symbol.asyncDispose]())
const authority = await createAuthority('webhooks')
const leaf = await createLeaf(authority, {
  commonName: 'hook',
  usage: 'server',
  names: { dns: ['hook.default.svc'], ips: ['127.0.0.1'] },
})

const seen: { path: string; review: Review }[] = []
const answers = new Map<string, (review: Review) => Answer | undefined>()
const server = createServer({ key: leaf.key, cert: leaf.certificate }, (request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  request.on('end', () => {
    const review = JSON.parse(text) as Review
    const path = request.url ?? ''
    seen.push({ path, review })
    const answer = answers.get(path)?.(review)
    if (answer === undefined) return
    const { patch, ...rest } = answer
    const patched =
      patch === undefined
        ? {}
        : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: review.request.uid, ...rest, ...patched },
      }),
    )
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

const configurations = (kind: 'Mutating' | 'Validating'): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: `${kind}WebhookConfiguration`,
  plural: `${kind.toLowerCase()}webhookconfigurations`,
  namespaced: false,
})

async function configure(
  kind: 'Mutating' | 'Validating',
  name: string,
  changes: object = {},
): Promise<AsyncDisposable> {
  const webhook = {
    name: `${name}.hooks.test`,
    clientConfig: {
      url: `https://127.0.0.1:${port}/${name}`,
      caBundle: Buffer.from(authority.certificate).toString('base64'),
    },
    rules: [
      { operations: ['CREATE', 'UPDATE', 'DELETE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] },
    ],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...changes,
  }
  await client.create(configurations(kind), {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks: [webhook],
  } as KubeObject)
  return {
    async [Symbol.asyncDispose]() {
      await client.delete(configurations(kind), { name })
    },
  }
}

const configMap = (name: string, labels: Record<string, string> = { app: 'test' }): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', labels },
    data: { a: '1' },
  }) as KubeObject

test('a mutating webhook changes the object, a validating one sees the change', async () => {
  answers.set('/mutate', () => ({
    allowed: true,
    patch: [{ op: 'add', path: '/metadata/labels', value: { seen: 'yes' } }],
  }))
  answers.set('/validate', ({ request }) => ({ allowed: request.object?.metadata.labels?.seen === 'yes' }))
  await using _mutating = await configure('Mutating', 'mutate')
  await using _validating = await configure('Validating', 'validate')
  const created = await client.create(resources.configMaps, configMap('a'))
  assert.equal(created.metadata.labels?.seen, 'yes')
  const { request } = seen.at(-1)?.review ?? {}
  assert.equal(request?.operation, 'CREATE')
  assert.equal(request?.userInfo.username, 'kubernetes-admin')
  assert.equal(request?.oldObject, null)
})

test('a validating webhook refuses with its own words and code', async () => {
  answers.set('/refuse', () => ({ allowed: false, status: { code: 418, message: 'not today' } }))
  await using _hook = await configure('Validating', 'refuse')
  await assert.rejects(
    client.create(resources.configMaps, configMap('b')),
    (error: { code?: number; message: string }) => {
      assert.equal(error.code, 418)
      assert.match(error.message, /admission webhook "refuse\.hooks\.test" denied the request: not today/)
      return true
    },
  )
  await assert.rejects(client.delete(resources.configMaps, { namespace: 'default', name: 'a' }), /not today/)
  assert.equal(seen.at(-1)?.review.request.operation, 'DELETE')
  assert.equal(seen.at(-1)?.review.request.oldObject?.metadata.name, 'a')
})

test('a webhook that does not answer fails the request or is ignored, as its policy says', async () => {
  answers.set('/silent', () => undefined)
  {
    await using _hook = await configure('Validating', 'silent', { timeoutSeconds: 1 })
    await assert.rejects(
      client.create(resources.configMaps, configMap('c')),
      /failed calling webhook "silent\.hooks\.test": no answer within 1 seconds/,
    )
  }
  await using _hook = await configure('Validating', 'silent', { timeoutSeconds: 1, failurePolicy: 'Ignore' })
  await client.create(resources.configMaps, configMap('c'))
})

test('a webhook whose certificate the bundle does not vouch for is not trusted', async () => {
  answers.set('/other', () => ({ allowed: true }))
  const other = await createAuthority('someone else')
  const clientConfig = {
    url: `https://127.0.0.1:${port}/other`,
    caBundle: Buffer.from(other.certificate).toString('base64'),
  }
  await using _hook = await configure('Validating', 'other', { clientConfig })
  await assert.rejects(client.create(resources.configMaps, configMap('d')), /failed calling webhook/)
  assert.ok(!seen.some(({ path }) => path === '/other'))
})

test('selectors and dry run decide whether and how a webhook is asked', async () => {
  answers.set('/some', () => ({ allowed: false }))
  await using _hook = await configure('Validating', 'some', { objectSelector: { matchLabels: { guarded: 'yes' } } })
  await client.create(resources.configMaps, configMap('e'))
  await assert.rejects(
    client.create(resources.configMaps, configMap('f', { guarded: 'yes' }), { dryRun: true }),
    /denied the request/,
  )
  assert.equal(seen.at(-1)?.review.request.dryRun, true)
})

test('a webhook is asked again when a later one changed the object', async () => {
  const calls: string[] = []
  answers.set('/first', () => {
    calls.push('first')
    return { allowed: true }
  })
  answers.set('/second', () => {
    calls.push('second')
    return { allowed: true, patch: [{ op: 'add', path: '/metadata/labels', value: { second: '1' } }] }
  })
  await using _first = await configure('Mutating', 'first', { reinvocationPolicy: 'IfNeeded' })
  await using _second = await configure('Mutating', 'second')
  await client.create(resources.configMaps, configMap('g'))
  assert.deepEqual(calls, ['first', 'second', 'first'])
})

test('a webhook behind a service is reached at its endpoint and verified by the service name', async () => {
  answers.set('/service', () => ({ allowed: true, warnings: ['careful'] }))
  await client.create(resources.services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'hook', namespace: 'default' },
    spec: { ports: [{ name: 'https', port: 443, targetPort: port }] },
  } as KubeObject)
  await client.create(resources.endpointSlices, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'hook', namespace: 'default', labels: { 'kubernetes.io/service-name': 'hook' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  } as KubeObject)
  const clientConfig = {
    service: { namespace: 'default', name: 'hook', path: '/service' },
    caBundle: Buffer.from(authority.certificate).toString('base64'),
  }
  await using _hook = await configure('Validating', 'service', { clientConfig })
  const response = await client.request('/api/v1/namespaces/default/configmaps', {
    method: 'POST',
    body: configMap('h'),
    headers: { 'content-type': 'application/json' },
  })
  assert.equal(response.status, 201)
  assert.match(response.headers.get('warning') ?? '', /careful/)
})

test('a pod gets its service account and the volume with its token', async () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'host' }] },
  }
  const other = { ...pod, spec: { ...pod.spec, serviceAccountName: 'other' } }
  await assert.rejects(client.create(resources.pods, other), /serviceaccount "other" not found/)
  const early = client.create<KubeObject>(resources.pods, pod)
  await client.create(resources.serviceAccounts, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: 'default' },
  })
  const created = (await early) as KubeObject<{
    serviceAccountName?: string
    volumes?: { name: string; projected?: { sources: object[] } }[]
    containers: { volumeMounts?: { name: string; mountPath: string }[] }[]
  }>
  const [volume] = created.spec?.volumes ?? []
  assert.equal(created.spec?.serviceAccountName, 'default')
  assert.match(volume?.name ?? '', /^kube-api-access-/)
  assert.equal(volume?.projected?.sources.length, 3)
  assert.equal(
    created.spec?.containers[0]?.volumeMounts?.[0]?.mountPath,
    '/var/run/secrets/kubernetes.io/serviceaccount',
  )
})

test('nothing is created in a namespace that does not exist', async () => {
  const lost = configMap('x')
  await assert.rejects(
    client.create(resources.configMaps, { ...lost, metadata: { ...lost.metadata, namespace: 'nowhere' } }),
    /namespaces "nowhere" not found/,
  )
  await assert.rejects(client.delete(resources.namespaces, { name: 'kube-system' }), /may not be deleted/)
})
