import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { create } from '@bufbuild/protobuf'
import {
  type ChannelCredentials,
  Client,
  credentials,
  status as grpcStatus,
  Metadata,
  Server,
  ServerCredentials,
} from '@grpc/grpc-js'
import { makeCa, makeLeaf, type TestCa } from '../../test/support/ca.ts'
import { createLogging, createMetricsRegistry, renderMetrics, silentLogging } from '../observability/index.ts'
import { ca } from '../proto/index.ts'
import {
  type Authenticator,
  bindCertificateService,
  type CaClientOptions,
  certificateServiceDefinition,
  createAuthority,
  createCaClient,
  createCaMetrics,
  createCertificateService,
  createClientCertificateAuthenticator,
  createKubernetesTokenAuthenticator,
  createNodeAuthorizer,
  createPodIndex,
  requestOfCall,
  SigningError,
  signingMaterial,
} from './index.ts'

const web = 'spiffe://cluster.local/ns/shop/sa/web'
const proxy = 'spiffe://cluster.local/ns/istio-system/sa/ztunnel'

/** A control plane on loopback, and clients of it. */
async function world(t: TestContext, root?: TestCa, first: readonly Authenticator[] = []) {
  const rootCa = root ?? (await makeCa({ name: 'root' }))
  const material = signingMaterial({ certificate: rootCa.pem, key: rootCa.key, roots: rootCa.pem, chain: '' })
  const authority = createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 7200 })
  const lines: string[] = []
  const sink = { write: (line: string) => void lines.push(line), dropped: 0, flush: async () => {}, flushSync() {} }
  const pods = createPodIndex([
    { name: 'z', namespace: 'istio-system', uid: 'u1', serviceAccount: 'ztunnel', node: 'n1', phase: 'Running' },
    { name: 'web-0', namespace: 'shop', uid: 'u2', serviceAccount: 'web', node: 'n1', phase: 'Running' },
  ])
  const authorize = createNodeAuthorizer({
    trustedAccounts: new Set(['istio-system/ztunnel']),
    trustDomains: () => ['cluster.local'],
    pods,
  })
  const registry = createMetricsRegistry()
  const service = createCertificateService({
    authority,
    authenticators: [
      ...first,
      createClientCertificateAuthenticator(),
      createKubernetesTokenAuthenticator({
        audiences: ['istio-ca'],
        trustDomain: () => 'cluster.local',
        clusters: {
          localId: 'Kubernetes',
          aliases: new Map(),
          remoteIds: () => [],
          reviewerOf: () => async (token, audiences) => {
            if (token !== 'ztunnel-token' && token !== 'other-audience') return { authenticated: false }
            return {
              authenticated: true,
              audiences: token === 'other-audience' ? [] : audiences,
              user: {
                username: 'system:serviceaccount:istio-system:ztunnel',
                groups: ['system:serviceaccounts'],
                extra: {
                  'authentication.kubernetes.io/pod-name': ['z'],
                  'authentication.kubernetes.io/pod-uid': ['u1'],
                },
              },
            }
          },
        },
      }),
    ],
    nodeAuthorizerOf: (clusterId) => (clusterId === 'Kubernetes' ? authorize : undefined),
    metrics: createCaMetrics(registry),
    audit: createLogging({ sink }).scope('ca'),
  })
  const binding = bindCertificateService(service, (call) => requestOfCall(call, ['cluster.local']), 1_000)
  const serving = await authority.issueServingCertificate(['istiod.test'], 3600)
  const keys = [{ private_key: Buffer.from(serving.privateKey), cert_chain: Buffer.from(serving.chain) }]
  const listen = async (wantsClientCertificate: boolean): Promise<number> => {
    const server = new Server()
    server.addService(binding.definition, binding.implementation)
    const tls = ServerCredentials.createSsl(Buffer.from(serving.roots), keys, wantsClientCertificate)
    t.after(() => server.forceShutdown())
    return new Promise((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', tls, (error, port) => (error === null ? resolve(port) : reject(error)))
    })
  }
  const port = await listen(false)
  const client = (options: Partial<CaClientOptions> = {}) => {
    const made = createCaClient({
      address: `127.0.0.1:${port}`,
      roots: { kind: 'pem', pem: rootCa.pem },
      alternativeHostname: 'istiod.test',
      token: () => 'ztunnel-token',
      clusterId: 'Kubernetes',
      impersonate: true,
      timeoutMs: 5000,
      ...options,
    })
    t.after(() => made.close())
    return made
  }
  return { rootCa, lines, client, port, listen, binding, service, registry }
}

test('a node proxy gets the certificate of a pod on its node', async (t) => {
  const { client, rootCa, lines } = await world(t)
  const certificate = await client({ validitySeconds: 600 }).requestCertificate(web)
  const leaf = new X509Certificate(certificate.leaf)
  assert.equal(leaf.subjectAltName, `URI:${web}`)
  assert.ok(leaf.verify(new X509Certificate(rootCa.pem).publicKey))
  assert.equal(certificate.roots.length, 1)
  assert.equal(certificate.serial, BigInt(`0x${leaf.serialNumber}`).toString())
  assert.equal(certificate.notAfter.getTime() - certificate.notBefore.getTime(), 720_000)
  const line = lines.find((text) => text.includes('certificate issued'))
  assert.match(line ?? '', new RegExp(`caller=${proxy} source=jwt identities=${web} serial=${certificate.serial}`))
})

test('refusals say nothing of their reason to the caller, and everything to the log', async (t) => {
  const { client, lines } = await world(t)
  const refused = (message: string) => ({ code: 'CA_CALL', message })
  const noPod = client().requestCertificate('spiffe://cluster.local/ns/shop/sa/other')
  await assert.rejects(
    noPod,
    refused('signing gRPC error (Unauthenticated): request impersonation authentication failure'),
  )
  assert.match(lines.at(-1) ?? '', /no instances of shop\/other found on node n1/)
  const otherCluster = client({ clusterId: 'elsewhere' }).requestCertificate(web)
  await assert.rejects(
    otherCluster,
    refused('signing gRPC error (Unauthenticated): request impersonation authentication failure'),
  )
  const badToken = client({ token: () => 'wrong' }).requestCertificate(web)
  await assert.rejects(badToken, refused('signing gRPC error (Unauthenticated): request authenticate failure'))
  const noToken = client({ token: () => undefined }).requestCertificate(web)
  await assert.rejects(noToken, refused('signing gRPC error (Unauthenticated): request authenticate failure'))
  const unaware = client({ token: () => 'other-audience' }).requestCertificate(web)
  await assert.rejects(unaware, refused('signing gRPC error (Unauthenticated): request authenticate failure'))
  const tooLong = client({ validitySeconds: 7201 }).requestCertificate(web)
  await assert.rejects(tooLong, /signing gRPC error \(InvalidArgument\): CSR signing error \(requested TTL 2h0m1s/)
  assert.ok(!lines.join('').includes('ztunnel-token'))
})

test('without impersonation the certificate is that of the token', async (t) => {
  const { client } = await world(t)
  const certificate = await client({ impersonate: false }).requestCertificate(web)
  assert.equal(new X509Certificate(certificate.leaf).subjectAltName, `URI:${proxy}`)
})

test('a CA that is not trusted or has another name is not asked', async (t) => {
  const { client, lines } = await world(t)
  const stranger = await makeCa({ name: 'stranger' })
  await assert.rejects(client({ roots: { kind: 'pem', pem: stranger.pem } }).requestCertificate(web), {
    code: 'CA_CALL',
  })
  await assert.rejects(client({ alternativeHostname: 'other.test' }).requestCertificate(web), { code: 'CA_CALL' })
  assert.deepEqual(lines, [])
  assert.throws(() => client({ address: 'http://127.0.0.1:1' }), { code: 'CA_CONFIGURATION' })
  await assert.rejects(client({ roots: { kind: 'file', path: '/nonexistent' } }).requestCertificate(web), {
    code: 'CA_CONFIGURATION',
  })
  await assert.rejects(client({ roots: { kind: 'pem', pem: '' } }).requestCertificate(web), {
    code: 'CA_CONFIGURATION',
  })
})

test('a root file is read again: a replaced link is taken up, a broken one is not', async (t) => {
  const { client, rootCa } = await world(t)
  const dir = mkdtempSync(join(tmpdir(), 'lateen-ca-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const stranger = await makeCa({ name: 'stranger' })
  const put = (name: string, text: string): void => {
    writeFileSync(join(dir, name), text)
    symlinkSync(name, join(dir, 'next'))
    renameSync(join(dir, 'next'), join(dir, 'root-cert.pem'))
  }
  put('one', stranger.pem)
  const ca = client({ roots: { kind: 'file', path: join(dir, 'root-cert.pem') } })
  await assert.rejects(ca.requestCertificate(web), { code: 'CA_CALL' })
  put('two', rootCa.pem)
  await ca.requestCertificate(web)
  put('three', 'nothing')
  await ca.requestCertificate(web)
})

test('an aborted request ends at once, and a CA that is not there is an error', async (t) => {
  const { client } = await world(t)
  const abort = new AbortController()
  const pending = client().requestCertificate(web, abort.signal)
  abort.abort()
  await assert.rejects(pending)
  await assert.rejects(client({ address: '127.0.0.1:1' }).requestCertificate(web), /signing gRPC error \(Unavailable\)/)
})

test('a client certificate of the mesh is enough; one that names no workload of it is not', async (t) => {
  const { listen, rootCa, binding } = await world(t)
  const port = await listen(true)
  const { Client: GrpcClient, credentials, Metadata } = await import('@grpc/grpc-js')
  const { makeRequest } = await import('../../test/support/ca.ts')
  const csr = await makeRequest({ key: 'ecP256' })
  const method = binding.definition.CreateCertificate
  assert.ok(method)
  const ask = async (uris: readonly string[]): Promise<string> => {
    const leaf = await makeLeaf(rootCa, uris)
    const tls = credentials.createSsl(Buffer.from(rootCa.pem), Buffer.from(leaf.key), Buffer.from(leaf.pem))
    const grpc: Client = new GrpcClient(`127.0.0.1:${port}`, tls, { 'grpc.ssl_target_name_override': 'istiod.test' })
    t.after(() => grpc.close())
    return new Promise((resolve) => {
      const message = { $typeName: 'istio.v1.auth.IstioCertificateRequest', csr, validityDuration: 0n }
      grpc.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        message,
        new Metadata(),
        (error, response) =>
          resolve(error === null ? (new X509Certificate(response.certChain[0]).subjectAltName ?? '') : error.details),
      )
    })
  }
  assert.equal(await ask([web]), `URI:${web}`)
  assert.equal(await ask(['spiffe://other.mesh/ns/shop/sa/web']), 'request authenticate failure')
  assert.equal(await ask([web, proxy]), 'request authenticate failure')
  assert.equal(await ask([]), 'request authenticate failure')
})

test('nothing is read of a request before its sender has proved who it is', { timeout: 20_000 }, async (t) => {
  const asked = Promise.withResolvers<void>()
  const decided = Promise.withResolvers<never>()
  decided.promise.catch(() => {})
  const authenticator: Authenticator = {
    name: 'slow',
    authenticate() {
      asked.resolve()
      return decided.promise
    },
  }
  const { listen } = await world(t, undefined, [authenticator])
  const session = connectHttp2(`https://localhost:${await listen(false)}`, { rejectUnauthorized: false })
  t.after(() => session.destroy())
  const { path } = certificateServiceDefinition.CreateCertificate
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  const message = Buffer.alloc(5 + 8 * 1024 * 1024, 'x')
  message.writeUInt8(0, 0)
  message.writeUInt32BE(message.byteLength - 5, 1)
  stream.end(message)
  await asked.promise
  // Flow control has stopped the sender: it may send nothing more, and most of the message is still here.
  while ((stream.session?.state.remoteWindowSize ?? 1) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok((session.socket.bytesWritten ?? 0) < 200_000, `${session.socket.bytesWritten} bytes`)
  const status = new Promise((resolve) => {
    stream.on('response', (headers) => headers['grpc-status'] !== undefined && resolve(headers['grpc-status']))
    stream.on('trailers', (headers) => resolve(headers['grpc-status']))
  })
  decided.reject(new Error('nobody'))
  assert.equal(Number(await status), grpcStatus.UNAUTHENTICATED)
})

test('a request that is too long, is none, or never comes is refused and written down', async (t) => {
  const { listen, lines } = await world(t)
  const client = new Client(`localhost:${await listen(false)}`, insecureTls())
  t.after(() => client.close())
  const { path, requestSerialize, responseDeserialize } = certificateServiceDefinition.CreateCertificate
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer ztunnel-token')
  const send = (...csrs: readonly string[]) =>
    new Promise<number | undefined>((resolve) => {
      const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, metadata, (error) =>
        resolve(error?.code),
      )
      for (const csr of csrs) call.write(create(ca.IstioCertificateRequestSchema, { csr }))
      if (csrs.length !== 1 || csrs[0] !== '') call.end()
    })
  assert.equal(await send('x'.repeat(70_000)), grpcStatus.INVALID_ARGUMENT)
  assert.match(lines.at(-1) ?? '', /certificate refused.*larger than 65536 bytes/)
  assert.equal(await send('a', 'b'), grpcStatus.INVALID_ARGUMENT)
  assert.equal(await send(), grpcStatus.INVALID_ARGUMENT)
  assert.equal(await send(''), grpcStatus.DEADLINE_EXCEEDED)
  assert.match(lines.at(-1) ?? '', /certificate refused.*took too long/)
})

test('a request that is far too long is counted as one that cannot be read', async (t) => {
  const { service, registry } = await world(t)
  const message = { csr: 'A'.repeat(1 << 20), validitySeconds: 0, impersonatedIdentity: '', certSigner: '' }
  await assert.rejects(
    service.createCertificate(async () => message, nodeProxy),
    { code: grpcStatus.INVALID_ARGUMENT, message: /^CSR signing error \(/ },
  )
  const family = registry.snapshot().find(({ name }) => name === 'citadel_server_csr_sign_err_count')
  assert.deepEqual(
    family?.series.map(({ labels, value }) => [labels[0], value]),
    [['CSR_ERROR', 1]],
  )
})

test('what a caller asks for cannot fill the log', async (t) => {
  const { service, lines } = await world(t)
  const long = `${web}${'x'.repeat(1 << 20)}`
  for (const asked of [{ impersonatedIdentity: long }, { certSigner: long }]) {
    const message = { csr: '', validitySeconds: 0, impersonatedIdentity: '', certSigner: '', ...asked }
    await assert.rejects(service.createCertificate(async () => message, nodeProxy))
    assert.match(lines.at(-1) ?? '', /certificate refused.*more than 2048 characters/)
    assert.ok((lines.at(-1) ?? '').length < 1_000)
  }
})

test('why another signer did not sign is in the log, not in the answer', async () => {
  const reasons: unknown[] = []
  const warn = (_: string, fields?: { readonly reason?: unknown }): void => void reasons.push(fields?.reason)
  const service = createCertificateService({
    authority: {
      sign: () =>
        Promise.reject(new SigningError('CERT_GEN_ERROR', 'no signature', { cause: new Error('denied by x') })),
    },
    authenticators: [{ name: 'any', authenticate: async () => ({ identities: [web], source: 'jwt' }) }],
    nodeAuthorizerOf: () => undefined,
    metrics: createCaMetrics(createMetricsRegistry()),
    audit: { ...silentLogging().scope('ca'), warn },
  })
  const message = { csr: '', validitySeconds: 0, impersonatedIdentity: '', certSigner: '' }
  await assert.rejects(
    service.createCertificate(async () => message, nodeProxy),
    { code: grpcStatus.INTERNAL, message: 'CSR signing error (no signature)' },
  )
  assert.deepEqual(reasons, ['no signature: denied by x'])
})

test('of more requests than are served at once the others are turned away', async () => {
  const decided = Promise.withResolvers<never>()
  const registry = createMetricsRegistry()
  const service = createCertificateService({
    authority: { sign: () => assert.fail('it was signed') },
    authenticators: [{ name: 'slow', authenticate: () => decided.promise }],
    nodeAuthorizerOf: () => undefined,
    metrics: createCaMetrics(registry),
    audit: silentLogging().scope('ca'),
    maxConcurrent: 2,
  })
  const ask = () => service.createCertificate(async () => assert.fail('it was read'), nodeProxy)
  const waiting = [ask(), ask()]
  await assert.rejects(ask(), { code: grpcStatus.RESOURCE_EXHAUSTED })
  decided.reject(new Error('nobody'))
  for (const one of waiting) await assert.rejects(one, { code: grpcStatus.UNAUTHENTICATED })
  await assert.rejects(ask(), { code: grpcStatus.UNAUTHENTICATED })
  const text = await renderMetrics(registry, 'text')
  assert.match(text, /^citadel_server_csr_count 4$/m)
  assert.match(text, /^citadel_server_turned_away_count 1$/m)
  assert.match(text, /^citadel_server_authentication_failure_count 3$/m)
})

const nodeProxy = {
  peerAddress: '10.0.0.1:1',
  header: (name: string) =>
    name === 'authorization' ? ['Bearer ztunnel-token'] : name === 'clusterid' ? ['Kubernetes'] : [],
}

/** A channel that takes any server certificate. */
function insecureTls(): ChannelCredentials {
  return credentials.createFromSecureContext(createSecureContext(), {
    checkServerIdentity: () => undefined,
    rejectUnauthorized: false,
  })
}

test('callers who are nobody cannot fill the log', async () => {
  const root = await makeCa({ name: 'root' })
  const material = signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' })
  let lines = 0
  const warn = (): void => {
    lines += 1
  }
  const service = createCertificateService({
    authority: createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 7200 }),
    authenticators: [createClientCertificateAuthenticator()],
    nodeAuthorizerOf: () => undefined,
    metrics: createCaMetrics(createMetricsRegistry(), { root: () => undefined, chain: () => undefined }),
    audit: { ...silentLogging().scope('ca'), warn },
  })
  const stranger = { peerAddress: '10.0.0.1:1', header: () => [] }
  for (let at = 0; at < 500; at += 1) {
    await assert.rejects(
      service.createCertificate(async () => assert.fail('it was read'), stranger),
      { code: 16 },
    )
  }
  assert.ok(lines >= 1 && lines < 500, `${lines} lines`)
})
