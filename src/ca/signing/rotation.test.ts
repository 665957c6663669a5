import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { makeCa, makeRequest } from '../../../test/support/ca.ts'
import { memorySecretStore } from '../../../test/support/secret-store.ts'
import { certificateBlocks } from '../../util/index.ts'
import { createAuthority } from './authority.ts'
import { type RotationOptions, rotateRoot, runRootRotator } from './rotation.ts'
import { loadOrCreateSelfSigned, materialOfSecret } from './self-signed.ts'

const options = { organization: 'cluster.local', ttlSeconds: 1000 }
const secretName = 'istio-ca-secret'

async function world() {
  const store = memorySecretStore()
  const start = Date.now()
  const clock = { now: () => new Date(start) }
  const { material } = await loadOrCreateSelfSigned(store, { ...options, now: () => clock.now() })
  const authority = createAuthority({ material, defaultTtlSeconds: 60, maxTtlSeconds: 600, now: () => clock.now() })
  const rotateWith = (more: Partial<RotationOptions>) =>
    rotateRoot({ store, secretName, authority, graceRatio: 0.2, ...options, now: () => clock.now(), ...more })
  const rotate = () => rotateWith({})
  return {
    store,
    authority,
    rotate,
    rotateWith,
    setTime: (seconds: number) => {
      clock.now = () => new Date(start + seconds * 1000)
    },
  }
}

test('replicas that start at once end up with the same root', async () => {
  const store = memorySecretStore()
  const replicas = await Promise.all(Array.from({ length: 5 }, () => loadOrCreateSelfSigned(store, options)))
  assert.equal(new Set(replicas.map(({ material }) => material.rootBundle)).size, 1)
  assert.equal(store.secrets.size, 1)
})

test('a Secret without material is neither used nor written over', async () => {
  const store = memorySecretStore()
  await store.create(secretName, { type: 'Opaque', data: {} })
  await assert.rejects(loadOrCreateSelfSigned(store, options), { code: 'INCOMPLETE' })
  assert.deepEqual(store.secrets.get(secretName)?.data, {})
})

test("the user's own cacerts is used but not managed", async () => {
  const store = memorySecretStore()
  const root = await makeCa({ name: 'theirs' })
  const data = { 'ca-cert.pem': root.pem, 'ca-key.pem': root.key, 'root-cert.pem': root.pem }
  await store.create('cacerts', { type: 'Opaque', data })
  const found = await loadOrCreateSelfSigned(store, { ...options, useCacerts: true })
  assert.equal(found.isManaged, false)
})

test('near its end the root is renewed with its key, and old leaves stay good', async () => {
  const { authority, rotate, setTime, store } = await world()
  const before = authority.rootBundle
  const csrPem = await makeRequest({ key: 'ecP256' })
  const [leaf = ''] = await authority.sign({ csrPem, identities: ['spiffe://t/ns/a/sa/b'], validitySeconds: 60 })
  setTime(700)
  assert.equal((await rotate()).kind, 'unchanged')
  setTime(850)
  assert.equal((await rotate()).kind, 'rotated')
  assert.notEqual(authority.rootBundle, before)
  const root = new X509Certificate(authority.rootBundle)
  assert.ok(new X509Certificate(leaf).verify(root.publicKey))
  assert.match(root.subject, /O=cluster\.local/)
  assert.equal(store.secrets.get(secretName)?.data['root-cert.pem'], authority.rootBundle)
  assert.equal((await rotate()).kind, 'unchanged')
})

test('a root with a new key is trusted by everybody before it signs, and the old one as long as it lasts', async () => {
  const { authority, store, setTime, rotateWith } = await world()
  const rotate = () => rotateWith({ overlapSeconds: 60 })
  const old = authority.rootBundle
  const csrPem = await makeRequest({ key: 'ecP256' })
  const sign = async () => {
    const chain = await authority.sign({ csrPem, identities: ['spiffe://t/ns/a/sa/b'], validitySeconds: 60 })
    return { leaf: new X509Certificate(chain[0] ?? ''), roots: certificateBlocks(chain.at(-1) ?? '') }
  }
  const isSignedBy = (leaf: X509Certificate, root: string) => leaf.verify(new X509Certificate(root).publicKey)
  setTime(850)
  assert.equal((await rotate()).kind, 'announced')
  const during = await sign()
  assert.equal(during.roots.length, 2)
  assert.ok(isSignedBy(during.leaf, old))
  const next = during.roots.find((root) => root !== old) ?? ''
  setTime(900)
  assert.equal((await rotate()).kind, 'unchanged')
  setTime(911)
  assert.equal((await rotate()).kind, 'rotated')
  const after = await sign()
  assert.ok(isSignedBy(after.leaf, next))
  assert.deepEqual(after.roots, [next, old])
  assert.equal(store.secrets.get(secretName)?.data['next-ca-key.pem'], undefined)
  assert.equal((await rotate()).kind, 'unchanged')
  setTime(1_700)
  assert.equal((await rotate()).kind, 'announced')
  setTime(1_761)
  assert.equal((await rotate()).kind, 'rotated')
  assert.equal((await sign()).roots.includes(old), false)
})

test('another replica takes over an announced root without changing it', async () => {
  const { authority, store, setTime, rotateWith } = await world()
  const other = createAuthority({ material: authority.material, defaultTtlSeconds: 60, maxTtlSeconds: 600 })
  setTime(850)
  await rotateWith({ overlapSeconds: 60 })
  const written = store.secrets.get(secretName)
  assert.equal((await rotateWith({ authority: other, graceRatio: undefined, overlapSeconds: 60 })).kind, 'reloaded')
  assert.equal(other.rootBundle, authority.rootBundle)
  assert.equal(store.secrets.get(secretName), written)
})

test('a replica that checks while it renews does not go back to the root before', async () => {
  const { authority, store, setTime, rotateWith } = await world()
  setTime(850)
  assert.equal((await rotateWith({ overlapSeconds: 50 })).kind, 'announced')
  setTime(905)
  // What is read may be old by the time it is looked at.
  const slow = { ...store, read: async (name: string) => tick(await store.read(name)) }
  const following = rotateWith({ store: slow, graceRatio: undefined, overlapSeconds: 50 })
  assert.equal((await rotateWith({ overlapSeconds: 50 })).kind, 'rotated')
  assert.equal((await following).kind, 'unchanged')
  const secret = store.secrets.get(secretName)
  assert.ok(secret)
  assert.equal(authority.rootBundle, materialOfSecret(secretName, secret, '').rootBundle)
  assert.ok(authority.material.certificate.equal(materialOfSecret(secretName, secret, '').certificate))
})

test('a rotator that is ended while it waits for another check does not renew', async () => {
  const { authority, setTime, store } = await world()
  setTime(850)
  const before = store.secrets.get(secretName)
  const [end, other] = [new AbortController(), Promise.withResolvers<void>()]
  const outcomes: string[] = []
  const ended = authority.inTurn(() => other.promise)
  const rotator = runRootRotator(
    {
      ...{ store, secretName, authority, graceRatio: 1, ...options, hasJitter: false, checkIntervalSeconds: 1000 },
      onOutcome: ({ kind }) => void outcomes.push(kind),
    },
    end.signal,
  )
  end.abort()
  other.resolve()
  await Promise.all([ended, rotator])
  assert.deepEqual(outcomes, [])
  assert.equal(store.secrets.get(secretName), before)
})

test('with too little time left to announce another, the root is renewed with its key', async () => {
  const { authority, setTime, rotateWith } = await world()
  setTime(950)
  assert.equal((await rotateWith({ overlapSeconds: 60 })).kind, 'rotated')
  assert.equal(certificateBlocks(authority.rootBundle).length, 1)
})

test("another replica's root is taken over", async () => {
  const { authority, rotate, store } = await world()
  const other = memorySecretStore()
  await loadOrCreateSelfSigned(other, options)
  const theirs = other.secrets.get(secretName)
  assert.ok(theirs)
  store.secrets.set(secretName, theirs)
  assert.equal((await rotate()).kind, 'reloaded')
  assert.equal(authority.rootBundle, materialOfSecret(secretName, theirs, '').rootBundle)
})

test('when the Secret is gone or cannot be written the root in force stays', async () => {
  const { authority, rotate, store, setTime } = await world()
  const before = authority.material
  setTime(850)
  store.failWrites = true
  assert.equal((await rotate()).kind, 'failed')
  store.secrets.clear()
  assert.equal((await rotate()).kind, 'missing')
  assert.equal(authority.material, before)
})

test('the rotator checks until it is ended, and not at all with no interval', async () => {
  const { authority, store } = await world()
  const end = new AbortController()
  const outcomes: string[] = []
  const checked = Promise.withResolvers<void>()
  const base = { store, secretName, authority, graceRatio: 0.2, ...options, hasJitter: false }
  await runRootRotator({ ...base, checkIntervalSeconds: 0 }, end.signal)
  const running = runRootRotator(
    {
      ...base,
      checkIntervalSeconds: 0.005,
      onOutcome: ({ kind }) => {
        if (outcomes.push(kind) === 3) checked.resolve()
      },
    },
    end.signal,
  )
  await checked.promise
  end.abort()
  await running
  assert.deepEqual(outcomes.slice(0, 3), ['unchanged', 'unchanged', 'unchanged'])
})

test('an announced root is waited for while the one in force lasts', async () => {
  const { authority, rotateWith, setTime, store } = await world()
  const rotate = () => rotateWith({ overlapSeconds: 150 })
  setTime(810)
  assert.equal((await rotate()).kind, 'announced')
  const bundle = authority.rootBundle
  // Less is left now than the next root takes to be known, but it will be in time.
  setTime(900)
  assert.equal((await rotate()).kind, 'unchanged')
  assert.equal(authority.rootBundle, bundle)
  setTime(961)
  assert.equal((await rotate()).kind, 'rotated')
  assert.equal(store.secrets.get(secretName)?.data['next-ca-key.pem'], undefined)
})

test('an announced root that would come too late is given up', async () => {
  const { authority, rotateWith, setTime, store } = await world()
  setTime(810)
  assert.equal((await rotateWith({ overlapSeconds: 100 })).kind, 'announced')
  setTime(850)
  // Whoever lengthens the overlap meanwhile has it come after the end.
  assert.equal((await rotateWith({ overlapSeconds: 500 })).kind, 'rotated')
  assert.equal(certificateBlocks(authority.rootBundle).length, 1)
  const { data = {} } = store.secrets.get(secretName) ?? {}
  assert.ok(!('next-ca-cert.pem' in data) && !('next-ca-key.pem' in data))
  assert.equal((await rotateWith({ overlapSeconds: 500 })).kind, 'unchanged')
})

test('a share of nothing renews a root that has ended', async () => {
  const { rotateWith, setTime } = await world()
  setTime(999)
  assert.equal((await rotateWith({ graceRatio: 0 })).kind, 'unchanged')
  setTime(1001)
  assert.equal((await rotateWith({ graceRatio: undefined })).kind, 'unchanged')
  assert.equal((await rotateWith({ graceRatio: 0 })).kind, 'rotated')
})

test('a long interval is not taken for none', async (t) => {
  const { authority, store } = await world()
  const warnings: string[] = []
  const warned = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', warned)
  t.after(() => process.off('warning', warned))
  const end = new AbortController()
  const checked = Promise.withResolvers<void>()
  const rotator = runRootRotator(
    {
      ...{ store, secretName, authority, graceRatio: 0.2, ...options, hasJitter: false },
      checkIntervalSeconds: 40 * 86_400,
      onOutcome: () => checked.resolve(),
    },
    end.signal,
  )
  await checked.promise
  await new Promise((resolve) => setImmediate(resolve))
  end.abort()
  await rotator
  assert.deepEqual(warnings, [])
})

test('the first check waits for a random part of the interval', async (t) => {
  const { authority, store } = await world()
  t.mock.method(Math, 'random', () => 0.999)
  const end = new AbortController()
  let checks = 0
  const base = { store, secretName, authority, graceRatio: 0.2, ...options, checkIntervalSeconds: 1000 }
  const onOutcome = (): void => {
    checks += 1
  }
  const rotator = runRootRotator({ ...base, onOutcome }, end.signal)
  await rotateRoot(base)
  await new Promise((resolve) => setImmediate(resolve))
  end.abort()
  await rotator
  assert.equal(checks, 0)
})
