import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startApi } from '../../../test/support/embedded-api.ts'
import { type KubeObject, resources } from '../../api/index.ts'
import { createKubeClient, isKubeError, requestCertificate } from '../../kube/index.ts'
import { silentLogging } from '../../observability/index.ts'
import { writeCredentials } from '../credentials.ts'
import { servingCertificate } from '../node/serving-certificate.ts'
import { startControllers } from './index.ts'
import { whyNot } from './node-certificates.ts'
import type { EndpointSlice, Node, Service, SigningRequest } from './objects.ts'

const directory = mkdtempSync(join(tmpdir(), 'lateen-node-certificates-'))
const api = await startApi(directory)
const client = await createKubeClient({ kubeconfig: api.kubeconfig })
after(async () => {
  await client.close()
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

const node = (name: string, ...ips: string[]): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: {
    addresses: [...ips.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: name }],
  },
})
const nodes = [node('n1', '10.0.0.1', 'fd00::1'), node('n2', '10.0.0.2')]
const alone = { nodes, services: [], endpointSlices: [] }

/** A request as the API server has it; nobody signs it. */
async function requestOf(
  changes: Partial<Omit<Parameters<typeof requestCertificate>[1], 'subject'>> & {
    commonName?: string
    organizations?: string[]
    user?: string
    groups?: string[]
  } = {},
): Promise<SigningRequest> {
  const { commonName = 'system:node:n1', organizations = ['system:nodes'], user = 'system:node:n1', ...rest } = changes
  const { groups = ['system:nodes', 'system:authenticated'], ...options } = rest
  const asked = requestCertificate(client, {
    name: 'test',
    subject: { commonName, organizations },
    names: { dns: ['n1'], ips: ['10.0.0.1'] },
    signerName: 'example.com/none',
    usages: ['digital signature', 'server auth'],
    timeoutMs: 1,
    ...options,
  })
  await assert.rejects(asked, { reason: 'Timeout' })
  const { items } = await client.list<SigningRequest>(resources.certificateSigningRequests)
  for (const { metadata } of items) await client.delete(resources.certificateSigningRequests, { name: metadata.name })
  const [made] = items
  assert.ok(made?.spec)
  return { ...made, spec: { ...made.spec, username: user, groups } }
}

describe('a request of a node', () => {
  for (const [what, changes, expected] of [
    ['for its name and one of its addresses', {}, undefined],
    ['for all of its addresses', { names: { ips: ['10.0.0.1', 'fd00::1'] } }, undefined],
    ['by somebody else', { user: 'admin', groups: ['system:masters'] }, /is no node/],
    ['by a user outside of the group', { groups: ['system:authenticated'] }, /is no node/],
    ['in the name of another', { commonName: 'system:node:n2' }, /the subject is/],
    ['of another group', { organizations: ['system:masters'] }, /the subject is/],
    ['of one more group', { organizations: ['system:nodes', 'system:masters'] }, /the subject is/],
    ['for the address of another', { names: { ips: ['10.0.0.2'] } }, /10\.0\.0\.2 is not the node's/],
    ['for the name of a service', { names: { dns: ['kubernetes.default.svc'] } }, /is not the node's/],
    ['to be a client', { usages: ['client auth'] }, /usages/],
    ['to be a client too', { usages: ['server auth', 'client auth'] }, /usages/],
  ] as const) {
    test(`${what} is ${expected === undefined ? '' : 'not '}approved`, async () => {
      const { names, ...rest } = changes as Parameters<typeof requestOf>[0] & object
      const why = await whyNot(await requestOf({ ...rest, ...(names === undefined ? {} : { names }) }), alone)
      if (expected === undefined) assert.equal(why, undefined)
      else assert.match(why ?? '', expected)
    })
  }

  test('is not approved for an address that another node has as well, or for a node that is not there', async () => {
    const request = await requestOf()
    assert.match((await whyNot(request, { ...alone, nodes: [...nodes, node('n3', '10.0.0.1')] })) ?? '', /is another's/)
    assert.match((await whyNot(request, { ...alone, nodes: [] })) ?? '', /there is no node n1/)
    const spec = { ...request.spec, request: Buffer.from('nonsense').toString('base64') } as SigningRequest['spec']
    assert.match((await whyNot({ ...request, ...(spec && { spec }) }, alone)) ?? '', /no certificate request/)
  })
})

test('a node that says it has the names and addresses of others gets no certificate for them', async () => {
  const named = { namespace: 'default', name: 'kubernetes' }
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: named,
    spec: { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::60'], externalIPs: ['10.0.0.1'] },
  }
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...named, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.254'] }],
  }
  const foreign = ['10.96.0.1', 'fd00::60', '10.0.0.254', '127.0.0.1', '::1']
  const liar = node('n1', '10.0.0.1', ...foreign)
  liar.status?.addresses?.push({ type: 'Hostname', address: 'kubernetes.default.svc' })
  const addressed = { nodes: [liar], services: [service], endpointSlices: [slice] }
  assert.equal(await whyNot(await requestOf(), addressed), undefined)
  for (const ip of foreign) {
    assert.match((await whyNot(await requestOf({ names: { ips: [ip] } }), addressed)) ?? '', /is another's as well/, ip)
  }
  const asked = await requestOf({ names: { dns: ['kubernetes.default.svc'] } })
  assert.match((await whyNot(asked, addressed)) ?? '', /is not the node's/)
})

test('a node gets its certificate with its own credentials, and can not approve it itself', {
  timeout: 60_000,
}, async () => {
  const rights = async (kind: 'controllers' | 'scheduler') => {
    const path = join(directory, kind)
    await writeCredentials({ client, administrator: api.kubeconfig, part: { kind }, path, host: '127.0.0.1' })
    return createKubeClient({ kubeconfig: path })
  }
  const path = join(directory, 'node')
  const part = { kind: 'node', name: 'n1' } as const
  await writeCredentials({ client, administrator: api.kubeconfig, part, path, host: '127.0.0.1' })
  const [controllers, scheduler, own] = [
    await rights('controllers'),
    await rights('scheduler'),
    await createKubeClient({ kubeconfig: path }),
  ]
  const log = silentLogging().scope('test')
  const running = await startControllers({ client: controllers, scheduler, log, rootCertificates: 'CA' })
  try {
    const { status, ...plain } = node('n1', '10.0.0.1')
    const created = await own.create<KubeObject>(resources.nodes, plain)
    await own.replace(resources.nodes, { ...created, status }, { subresource: 'status' })
    const ca = readFileSync(join(directory, 'pki/ca.crt'), 'utf8')
    const issued = await servingCertificate(own, { name: 'n1', ips: ['10.0.0.1'] }, join(directory, 'n1'), ca)
    assert.match(issued.certificate, /BEGIN CERTIFICATE/)
    const kept = await servingCertificate(own, { name: 'n1', ips: ['10.0.0.1'] }, join(directory, 'n1'), ca)
    assert.equal(kept.certificate, issued.certificate)
    const [request] = (await own.list<SigningRequest>(resources.certificateSigningRequests)).items
    assert.ok(request)
    await assert.rejects(
      own.replace(resources.certificateSigningRequests, request, { subresource: 'approval' }),
      (error) => isKubeError(error, 403),
    )
  } finally {
    await running[Symbol.asyncDispose]()
    for (const one of [controllers, scheduler, own]) await one.close()
  }
})
