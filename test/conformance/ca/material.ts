// Tables of CA material: start, files, rotation, and the parts of another signer's certificates.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import {
  caSourceOf,
  chainWithRoot,
  createAuthority,
  loadOrCreateSelfSigned,
  rotateRoot,
  rotationDelayMs,
  SigningError,
  signerNameOf,
  validateRequestForSigner,
} from '../../../src/ca/index.ts'
import { isBundleSubsetEitherWay } from '../../../src/util/index.ts'
import { makeCa, makeLeaf, makeRequest, x509 } from '../../support/ca.ts'
import { memorySecretStore } from '../../support/secret-store.ts'
import { assertOutcome, list, outcomeOf, type RunTable, secondsOf, text } from './data.ts'
import { extensionsOf } from './extensions.ts'

type Fields = Readonly<Record<string, unknown>>

const selfSignedStart: RunTable = async (row, expectedResult, input) => {
  const expected = expectedResult as Fields
  const { caTTL, organisation } = input.options as Fields
  const options = {
    organization: text(organisation),
    ttlSeconds: secondsOf(text(caTTL)),
    useCacerts: row.useCacerts === true,
  }
  const store = memorySecretStore()
  for (const name of Object.keys(row.secrets as Fields)) {
    const other = memorySecretStore()
    await loadOrCreateSelfSigned(other, options)
    const secret = other.secrets.get(name)
    assert.ok(secret)
    store.secrets.set(name, secret)
  }
  const existing = store.secrets.get('istio-ca-secret')
  const before = new Set(store.secrets.keys())
  const started = Date.now()
  const { material } = await loadOrCreateSelfSigned(store, options)
  const [created] = [...store.secrets.keys()].filter((name) => !before.has(name))
  assert.equal(created ?? null, expected.created)
  const secret = store.secrets.get(created ?? 'istio-ca-secret')
  assert.ok(secret)
  if (expected.type !== undefined) assert.equal(secret.type, expected.type)
  for (const key of list(expected.keysNonEmpty)) assert.ok(secret.data[key], key)
  for (const key of list(expected.keysEmpty)) assert.equal(secret.data[key], '', key)
  if (expected.hasKey !== undefined) assert.ok(text(expected.hasKey) in secret.data)
  if (expected.usesExistingCertificate) assert.equal(material.rootBundle, existing?.data['ca-cert.pem'])
  if (expected.certificate === undefined) return
  const wanted = expected.certificate as Fields
  const certificate = new x509.X509Certificate(secret.data['ca-cert.pem'] ?? '')
  const lifetime = (certificate.notAfter.getTime() - certificate.notBefore.getTime()) / 1000
  assert.equal(certificate.getExtension(x509.BasicConstraintsExtension)?.ca, wanted.isCA)
  assert.deepEqual(certificate.subjectName.getField('O'), wanted.O)
  assert.ok(Math.abs(lifetime - secondsOf(text(wanted.lifetime))) <= 1)
  assert.ok(Math.abs(certificate.notBefore.getTime() - started) <= 2000, 'not back-dated')
  assert.equal(secret.data['root-cert.pem'] === secret.data['ca-cert.pem'], wanted.rootEqualsSigner)
}

const bundleCompleteness: RunTable = async (row, expected) => {
  const outcome = await outcomeOf(() => caSourceOf(list(row.files)))
  if (typeof expected === 'object' && expected !== null && 'startError' in expected) {
    assert.ok('error' in outcome && outcome.error.includes(text(expected.startError)), JSON.stringify(outcome))
  } else assert.equal('kind' in outcome && (outcome.kind === 'self-signed' ? 'selfSigned' : 'plugged'), expected)
}

const bundleSubset: RunTable = async (row, expected) => {
  const made = new Map<string, string>()
  for (const name of [...list(row.a), ...list(row.b)]) if (!made.has(name)) made.set(name, (await makeCa({ name })).pem)
  const bundle = (names: unknown): string =>
    list(names)
      .map((name) => made.get(name))
      .join('')
  assert.equal(isBundleSubsetEitherWay(bundle(row.a), bundle(row.b)), expected)
}

const rotationDelay: RunTable = (row, expected, input, all) => {
  const now = Date.now()
  const at = (offset: unknown): Date => new Date(now + secondsOf(text(offset)) * 1000)
  const validity = { notBefore: at(row.created), notAfter: at(row.expires) }
  const delay = rotationDelayMs(validity, now, Number(row.ratio), Number(input.jitter), 0) / 1000
  assert.ok(Math.abs(delay - secondsOf(text(expected))) <= secondsOf(all.tolerance ?? '0s'), `${delay} s`)
}

const rootRotation: RunTable = async (row, expectedResult, input) => {
  const expected = expectedResult as Fields
  const lifetime = secondsOf(text(row.lifetime ?? '100h'))
  const remaining = secondsOf(text(row.remaining ?? '50h'))
  const options = { organization: 'test.ca.Org', ttlSeconds: lifetime }
  const created = (): Date => new Date(Date.now() - (lifetime - remaining) * 1000)
  const store = memorySecretStore()
  const { material, secretName } = await loadOrCreateSelfSigned(store, { ...options, now: created })
  const authority = createAuthority({ material, defaultTtlSeconds: 60, maxTtlSeconds: 600 })
  if (row.secretDiffersFromMemory) {
    const other = memorySecretStore()
    await loadOrCreateSelfSigned(other, { ...options, now: created })
    const secret = other.secrets.get(secretName)
    assert.ok(secret)
    store.secrets.set(secretName, secret)
  }
  if (row.secretMissing) store.secrets.clear()
  store.failWrites = row.secretUpdateFails === true
  const secretBefore = store.secrets.get(secretName)
  const graceRatio = Number(input.gracePercent) / 100
  const outcome = await rotateRoot({ store, secretName, authority, graceRatio, ...options })
  const isChanged = authority.material !== material
  const memory = !isChanged ? 'unchanged' : outcome.kind === 'rotated' ? 'updated' : 'reloaded'
  assert.equal(outcome.kind === 'rotated', expected.rotated)
  assert.equal(memory, expected.memory)
  const [old, now] = [material, authority.material].map(({ rootBundle }) => new X509Certificate(rootBundle))
  assert.ok(old && now)
  if (expected.sameKey) assert.ok(old.publicKey.equals(now.publicKey))
  if (expected.sameOrganisation) assert.equal(old.subject, now.subject)
  if (expected.secret === 'updated') assert.notEqual(store.secrets.get(secretName)?.version, secretBefore?.version)
}

const raValidateCSR: RunTable = async (row, expected, input) => {
  const csr = row.csr as Fields
  const csrPem = await makeRequest({
    key: 'ecP256',
    uris: list(csr.uris),
    dns: list(csr.dns),
    ips: list(csr.ips),
    emails: list(csr.emails),
    subject: (csr.subject ?? {}) as Readonly<Record<string, string>>,
    extraExtensions: extensionsOf(list(csr.extensions)),
  })
  const outcome = await outcomeOf(async () => {
    validateRequestForSigner(csrPem, list(input.callerIdentities))
    return true
  })
  assert.equal(outcome === true, expected)
}

const raSigner: RunTable = (row, expected) => {
  const names = { certSignerDomain: text(row.certSignerDomain), defaultSigner: text(row.k8sSigner) }
  const evaluate = (): string => signerNameOf(names, text(row.requestedSigner))
  if (typeof expected === 'string') assert.equal(evaluate(), expected)
  else {
    const { grpcCode, messageContains } = expected as Fields
    assert.throws(evaluate, (error) => {
      assert.ok(error instanceof SigningError && error.message.includes(text(messageContains)))
      assert.equal(error.code === 'CERT_GEN_ERROR' ? 'Internal' : 'InvalidArgument', grpcCode)
      return true
    })
  }
}

const raRoot: RunTable = async (row, expectedResult) => {
  const root = await makeCa({ name: 'root' })
  const intermediate = await makeCa({ name: 'int', issuer: root })
  const pem: Readonly<Record<string, string>> = {
    root: root.pem,
    int: intermediate.pem,
    otherRoot: (await makeCa({ name: 'otherRoot' })).pem,
    leaf: (await makeLeaf(intermediate, ['spiffe://cluster.local/ns/ns-a/sa/sa-a'])).pem,
  }
  const chain = list(row.chain)
  const join = (names: readonly string[]): string => names.map((name) => pem[name]).join('')
  const outcome = await outcomeOf(() => {
    const answer = chainWithRoot(join(chain), join(list(row.meshRoot)))
    const nameOf = (text: string): string | undefined =>
      Object.keys(pem).find((name) => pem[name]?.trim() === text.trim())
    return { appended: answer.slice(chain.length).map(nameOf) }
  })
  assertOutcome(outcome, expectedResult)
}

export const materialKinds = {
  selfSignedStart,
  bundleCompleteness,
  bundleSubset,
  rotationDelay,
  rootRotation,
  raValidateCSR,
  raSigner,
  raRoot,
}
