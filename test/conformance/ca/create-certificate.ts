// Cases of CreateCertificate: over a real gRPC connection to the service, with everything behind it but the caller's authentication.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { create } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js'
import {
  AuthenticationError,
  type Authenticator,
  bindCertificateService,
  certificateServiceDefinition,
  createAuthority,
  createCaMetrics,
  createCertificateService,
  createNodeAuthorizer,
  parseTrustedAccounts,
  requestOfCall,
  type SigningMaterial,
  signingMaterial,
} from '../../../src/ca/index.ts'
import { createMetricsRegistry, silentLogging } from '../../../src/observability/index.ts'
import { ca } from '../../../src/proto/index.ts'
import { certificateBlocks } from '../../../src/util/index.ts'
import { makeCa, makeRequest, type TestCa, type TestKey, x509 } from '../../support/ca.ts'
import { type Expected, type Input, list, secondsOf, text } from './data.ts'
import { extensionsOf } from './extensions.ts'
import { kubernetesCallerOf, podsOf } from './pods.ts'

type Fields = Readonly<Record<string, unknown>>

interface World {
  readonly material: SigningMaterial
  /** PEM of the symbolic names of the data. */
  readonly names: ReadonlyMap<string, string>
}

export async function runCreateCertificate(input: Input, expected: Expected): Promise<void> {
  const world = await makeWorld(input.ca as Fields)
  const registry = createMetricsRegistry()
  const answer = await ask(input, world, registry)
  assert.equal(answer.code, text(expected.grpcCode))
  if (expected.messageContains !== undefined) {
    assert.ok(answer.details.includes(text(expected.messageContains)), answer.details)
  }
  if (expected.metricErrorLabel !== undefined) {
    const family = registry.snapshot().find(({ name }) => name === 'citadel_server_csr_sign_err_count')
    assert.deepEqual(
      family?.series.map(({ labels, value }) => [labels[0], value]),
      [[expected.metricErrorLabel, 1]],
    )
  }
  if (answer.code !== 'OK') return
  assertVerifies(answer.chain)
  if (expected.certChain !== undefined) assertLayout(answer.chain, list(expected.certChain), world)
  if (expected.leaf !== undefined) assertLeaf(answer.chain[0] ?? '', expected.leaf as Fields, world)
}

async function makeWorld(data: Fields): Promise<World> {
  const kind = text(data.keyType) as TestKey
  const remaining = data.signerRemaining === undefined ? 24 * 365 * 3600 : secondsOf(text(data.signerRemaining))
  const notBefore = new Date(Date.now() - 100 * 3_600_000)
  const signerEnd = new Date(Date.now() + remaining * 1000)
  const names = new Map<string, string>()
  if (data.type === 'selfSigned') {
    const root = await makeCa({ name: 'root1', kind, notBefore, notAfter: signerEnd })
    names.set('root1', root.pem)
    return { names, material: signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' }) }
  }
  const farEnd = new Date(Date.now() + 24 * 3650 * 3_600_000)
  const rootNames = data.roots === undefined ? ['root1'] : list(data.roots)
  const roots: TestCa[] = []
  for (const name of rootNames) roots.push(await makeCa({ name, kind, notBefore, notAfter: farEnd }))
  const chain: TestCa[] = []
  let issuer = roots[0]
  for (const name of list(data.chain).toReversed()) {
    const isSigner = name === list(data.chain)[0]
    const end = isSigner ? signerEnd : farEnd
    issuer = await makeCa({ name, kind, notBefore, notAfter: end, ...(issuer ? { issuer } : {}) })
    chain.unshift(issuer)
  }
  list(data.chain).forEach((name, index) => {
    names.set(name, chain[index]?.pem ?? '')
  })
  rootNames.forEach((name, index) => {
    names.set(name, roots[index]?.pem ?? '')
  })
  const [signer] = chain
  assert.ok(signer)
  const join = (cas: readonly TestCa[]): string => cas.map(({ pem }) => pem).join('')
  return {
    names,
    material: signingMaterial({ certificate: signer.pem, key: signer.key, roots: join(roots), chain: join(chain) }),
  }
}

interface Answer {
  readonly code: string
  readonly details: string
  readonly chain: readonly string[]
}

async function ask(
  input: Input,
  { material }: World,
  registry: ReturnType<typeof createMetricsRegistry>,
): Promise<Answer> {
  const { defaultTTL, maxTTL } = input.ca as Fields
  const clusters = (input.clusters ?? {}) as Readonly<Record<string, { readonly pods: unknown }>>
  const trustedAccounts = parseTrustedAccounts(list(input.trustedNodeAccounts).join(','))
  const service = createCertificateService({
    authority: createAuthority({
      material,
      defaultTtlSeconds: secondsOf(text(defaultTTL)),
      maxTtlSeconds: secondsOf(text(maxTTL)),
    }),
    authenticators: [authenticatorOf(input.caller)],
    nodeAuthorizerOf: (clusterId) =>
      trustedAccounts.size === 0 || clusters[clusterId] === undefined
        ? undefined
        : createNodeAuthorizer({
            trustedAccounts,
            trustDomains: () => ['cluster.local'],
            pods: podsOf(clusters[clusterId]?.pods),
          }),
    metrics: createCaMetrics(registry),
    audit: silentLogging().scope('ca'),
  })
  const { definition, implementation } = bindCertificateService(service, (call) =>
    requestOfCall(call, ['cluster.local']),
  )
  const server = new Server()
  server.addService(definition, implementation)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  try {
    return await call(client, await messageOf(input.request as Fields), (input.grpcMetadata ?? {}) as Fields)
  } finally {
    client.close()
    server.forceShutdown()
  }
}

function authenticatorOf(caller: unknown): Authenticator {
  return {
    name: 'test',
    async authenticate() {
      if (caller === null || caller === undefined) throw new AuthenticationError('refused')
      const { identities, kubernetes } = caller as Fields
      return {
        identities: list(identities),
        ...(kubernetes === undefined ? {} : { kubernetes: kubernetesCallerOf(kubernetes) }),
        source: 'jwt',
      }
    },
  }
}

async function messageOf(request: Fields): Promise<ca.IstioCertificateRequest> {
  const csr = request.csr as string | Fields
  const pem =
    typeof csr === 'string'
      ? csr
      : await makeRequest({
          key: text(csr.key) as TestKey,
          uris: list(csr.uris),
          dns: list(csr.dns),
          ips: list(csr.ips),
          emails: list(csr.emails),
          extraExtensions: extensionsOf(list(csr.extensions)),
          subject: (csr.subject ?? {}) as Readonly<Record<string, string>>,
          isBroken: csr.signature === 'broken',
        })
  return create(ca.IstioCertificateRequestSchema, {
    csr: pem,
    validityDuration: wholeSeconds(text(request.validityDuration)),
    ...(request.metadata === undefined ? {} : { metadata: request.metadata as Record<string, string> }),
  })
}

/** A number of seconds is taken as it is, however large. */
function wholeSeconds(duration: string): bigint {
  return /^-?\d+$/.test(duration) ? BigInt(duration) : BigInt(Math.trunc(secondsOf(duration)))
}

function call(client: Client, message: ca.IstioCertificateRequest, headers: Fields): Promise<Answer> {
  const { path, requestSerialize, responseDeserialize } = certificateServiceDefinition.CreateCertificate
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, text(value))
  const options = { deadline: Date.now() + 10_000 }
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      message,
      metadata,
      options,
      (error: ServiceError | null, response?: ca.IstioCertificateResponse) => {
        if (error === null) resolve({ code: 'OK', details: '', chain: response?.certChain ?? [] })
        else resolve({ code: camelCase(status[error.code] ?? ''), details: error.details, chain: [] })
      },
    )
  })
}

function camelCase(name: string): string {
  return name.toLowerCase().replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase())
}

function assertVerifies(chain: readonly string[]): void {
  assert.ok(chain.length >= 2)
  const path = chain.slice(0, -1).map((pem) => new X509Certificate(pem))
  const roots = certificateBlocks(chain.at(-1) ?? '').map((pem) => new X509Certificate(pem))
  const isIssuedBy = (one: X509Certificate, issuer: X509Certificate): boolean =>
    one.checkIssued(issuer) && one.verify(issuer.publicKey)
  path.forEach((certificate, index) => {
    const issuers = path[index + 1] === undefined ? roots : [path[index + 1] as X509Certificate]
    assert.ok(
      issuers.some((issuer) => isIssuedBy(certificate, issuer)),
      `element ${index} is not issued by the next one`,
    )
  })
}

function assertLayout(chain: readonly string[], expected: readonly string[], { names }: World): void {
  const actual = chain.map((element, index) => {
    if (index === 0) return 'leaf'
    const known = certificateBlocks(element).map(
      (pem) => [...names].find(([, text]) => text.trim() === pem.trim())?.[0] ?? 'unknown',
    )
    return known.join('+')
  })
  assert.deepEqual(actual, expected)
}

const usageNames = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
]
const extendedNames: Readonly<Record<string, string>> = {
  [x509.ExtendedKeyUsage.serverAuth]: 'serverAuth',
  [x509.ExtendedKeyUsage.clientAuth]: 'clientAuth',
}

function assertLeaf(pem: string, expected: Fields, { material }: World): void {
  const leaf = new x509.X509Certificate(pem)
  const names = leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? []
  const usages = leaf.getExtension(x509.KeyUsagesExtension)?.usages ?? 0
  const ofType = (type: string): string[] => names.filter((name) => name.type === type).map(({ value }) => value)
  const actual: Readonly<Record<string, unknown>> = {
    uris: ofType('url'),
    dns: ofType('dns'),
    ips: ofType('ip'),
    subject: Object.fromEntries(
      leaf.subjectName.toJSON().flatMap((part) => Object.entries(part).map(([key, [value]]) => [key, value])),
    ),
    isCA: leaf.getExtension(x509.BasicConstraintsExtension)?.ca,
    keyUsage: usageNames.filter((_, bit) => (usages & (1 << bit)) !== 0),
    extKeyUsage: Array.from(
      leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? [],
      (usage) => extendedNames[String(usage)],
    ),
    publicKey: publicKeyOf(leaf),
    signatureAlgorithm: new X509Certificate(pem).signatureAlgorithm?.split('-')[0],
  }
  for (const [key, value] of Object.entries(expected)) {
    if (key === 'lifetime') {
      const seconds = (leaf.notAfter.getTime() - leaf.notBefore.getTime()) / 1000 - secondsOf(text(expected.backdated))
      assert.ok(Math.abs(seconds - secondsOf(text(value))) <= 5, `lifetime ${seconds} s`)
      assert.ok(Math.abs(Date.now() - leaf.notBefore.getTime() - 120_000) < 5000, 'back-dated by two minutes')
    } else if (key === 'notAfter') assert.equal(leaf.notAfter.getTime(), material.certificate.notAfter.getTime())
    else if (key !== 'backdated') assert.deepEqual(actual[key], value, key)
  }
}

function publicKeyOf(certificate: x509.X509Certificate): string {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = new X509Certificate(
    Buffer.from(certificate.rawData),
  ).publicKey
  if (type === 'rsa') return `rsa${details?.modulusLength}`
  return type === 'ec' ? (details?.namedCurve === 'prime256v1' ? 'ecP256' : 'ecP384') : String(type)
}
