import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkloadCertificate } from '../../ca/client/index.ts'
import { createCredentialsCache } from './credentials.ts'

const identity = { trustDomain: 'td', namespace: 'n', serviceAccount: 's' }
const id = 'spiffe://td/ns/n/sa/s'

const certificate = (name: string, notAfter = 1_000): WorkloadCertificate => ({
  privateKey: `key of ${name}`,
  leaf: `leaf of ${name}`,
  intermediates: [`intermediate of ${name}`],
  roots: ['root'],
  notBefore: new Date(0),
  notAfter: new Date(notAfter),
  serial: name,
})

function world(answer: (asked: number) => Promise<WorkloadCertificate> = async () => certificate('asked')) {
  const asked: string[] = []
  const learned: string[] = []
  let time = 0
  const cache = createCredentialsCache({
    ask(of) {
      asked.push(of)
      return answer(asked.length)
    },
    onCertificate: ({ serial }) => learned.push(serial),
    now: () => time,
  })
  return {
    cache,
    asked,
    learned,
    setTime(now: number) {
      time = now
    },
  }
}

test('what was told ahead is not asked for', async () => {
  const { cache, asked } = world()
  cache.receive({ kind: 'certificate', identity: id, certificate: certificate('told') })
  const credentials = await cache.get(identity)
  assert.equal(credentials.certificateChain, 'leaf of told\nintermediate of told')
  assert.equal(credentials.roots, 'root')
  assert.deepEqual(asked, [])
})

test('many who wait ask once', async () => {
  const { cache, asked } = world()
  const [first, second] = await Promise.all([cache.get(identity), cache.get(identity)])
  assert.equal(first, second)
  assert.equal(await cache.get(identity), first)
  assert.deepEqual(asked, [id])
})

test('the same certificate is the same value, a renewed one is another', async () => {
  const { cache, learned } = world()
  const asked = await cache.get(identity)
  cache.receive({ kind: 'certificate', identity: id, certificate: certificate('asked') })
  assert.equal(await cache.get(identity), asked)
  cache.receive({ kind: 'certificate', identity: id, certificate: certificate('renewed') })
  const renewed = await cache.get(identity)
  assert.equal(renewed.privateKey, 'key of renewed')
  assert.deepEqual(learned, ['asked', 'renewed'])
})

test('one that is taken back or has expired is asked for', async () => {
  const { cache, asked, setTime } = world(async (count) => certificate(`answer ${count}`, count * 1_000))
  cache.receive({ kind: 'certificate', identity: id, certificate: certificate('told') })
  cache.receive({ kind: 'no-certificate', identity: id })
  assert.equal((await cache.get(identity)).privateKey, 'key of answer 1')
  setTime(999)
  await cache.get(identity)
  assert.equal(asked.length, 1)
  setTime(1_000)
  assert.equal((await cache.get(identity)).privateKey, 'key of answer 2')
})

test('a failure is told to all who wait, and not remembered', async () => {
  const { cache, asked } = world(async (count) => {
    if (count === 1) throw new Error('no CA')
    return certificate('second')
  })
  const both = await Promise.allSettled([cache.get(identity), cache.get(identity)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal((await cache.get(identity)).privateKey, 'key of second')
  assert.equal(asked.length, 2)
})
