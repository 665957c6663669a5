// Verifies, from outside, that the running sample application is a mesh: identities, encryption, source addresses, policies.
import { randomBytes } from 'node:crypto'
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { type Fetched, fetchFrom, heldState, holdFrom, podOf, podsOf, watchWire } from './observer.ts'
import { CheckError, type CheckResult, eventually } from './report.ts'

export interface SampleCheckOptions {
  readonly client: KubeClient
  /** Network namespaces of the nodes, to watch the wire in. */
  readonly nodeNamespacePaths: readonly string[]
  /** How long pods may take to be ready. */
  readonly readyLimitMs?: number
}

const meshNamespaces = ['bookinfo', 'library']

export const sampleNamespaces: readonly string[] = [...meshNamespaces, 'outside']
const productpage = 'http://productpage.bookinfo:9080'
const details = 'http://details.library:9080'
/** How long a change may take to be seen. What it took is in the report. */
const settleMs = 10_000

type Step = readonly [name: string, run: (options: SampleCheckOptions) => Promise<string>]

const steps: readonly Step[] = [
  ['every pod of the sample is ready, and those of the mesh are captured', podsReady],
  ['a client in the mesh gets the product page, with reviews and their stars', pageWorks],
  ['between pods there is TLS on port 15008 and never plaintext', encrypted],
  ['the server sees the real address of the client', sourceAddress],
  ['the node proxy logs the identities of both ends', identities],
  ['a plaintext client is refused where mutual TLS is required', strictRefuses],
  ['a plaintext client is served where it is only preferred', permissiveServes],
  ['a service that only some may call refuses others', allowListed],
  ['a DENY policy stops new and established connections, and deleting it restores them', denyPolicy],
  ['an ALLOW policy for others does the same', allowPolicy],
]

/** Runs the checks one after the other, and yields what came of each. The first one decides whether the others can run. */
export async function* checkSample(options: SampleCheckOptions): AsyncGenerator<CheckResult> {
  for (const [name, run] of steps) {
    let result: CheckResult
    try {
      result = { name, passed: true, detail: await run(options) }
    } catch (error) {
      result = { name, passed: false, detail: (error as Error).message }
    }
    yield result
    if (run === podsReady && !result.passed) return
  }
}

function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}

async function podsReady({ client, readyLimitMs = 120_000 }: SampleCheckOptions): Promise<string> {
  const { value, afterMs } = await eventually(
    readyLimitMs,
    async () => {
      const pods = (await Promise.all(sampleNamespaces.map((namespace) => podsOf(client, namespace)))).flat()
      if (pods.length === 0) return { not: 'there are no pods in the namespaces bookinfo, library and outside' }
      const waiting = pods.filter((pod) => !isReady(pod))
      if (waiting.length > 0) return { not: `not ready: ${waiting.map(nameOf).join(', ')}` }
      const captured = (pod: Pod): boolean => pod.metadata?.annotations?.['ambient.istio.io/redirection'] === 'enabled'
      const bare = pods.filter((pod) => meshNamespaces.includes(pod.metadata?.namespace ?? '') && !captured(pod))
      return bare.length > 0 ? { not: `not captured: ${bare.map(nameOf).join(', ')}` } : pods.length
    },
    250,
  )
  return `${value} pods after ${(afterMs / 1000).toFixed(1)} s`
}

function nameOf(pod: Pod): string {
  return `${pod.metadata?.namespace}/${pod.metadata?.name}`
}

function outcome({ status, error }: Fetched): string {
  return error ?? `HTTP ${status}`
}

interface Page {
  readonly details?: { readonly title?: string; readonly error?: string }
  readonly reviews?: {
    readonly version?: string
    readonly error?: string
    readonly stars?: { readonly ratings?: Record<string, number>; readonly error?: string }
  }
}

async function pageWorks({ client }: SampleCheckOptions): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const versions = new Set<string>()
  await eventually(30_000, async () => {
    const fetched = await fetchFrom(reader.ip, `${productpage}/api/v1/products/0`)
    if (fetched.status !== 200) return { not: `the product page: ${outcome(fetched)}` }
    const { details: book, reviews } = fetched.body as Page
    if (book?.title === undefined) return { not: `details: ${book?.error}` }
    if (reviews?.version === undefined) return { not: `reviews: ${reviews?.error}` }
    versions.add(reviews.version)
    if (versions.size < 3) return { not: `only ${[...versions].join(', ')} of reviews v1, v2 and v3 answered` }
    if (reviews.version !== 'v1' && reviews.stars?.ratings === undefined) return { not: String(reviews.stars?.error) }
    return reviews.version === 'v1' ? { not: 'no review with stars came' } : true
  })
  return 'reviews v1, v2 and v3 answered'
}

async function encrypted({ client, nodeNamespacePaths }: SampleCheckOptions): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const stranger = await podOf(client, 'outside', 'stranger')
  const [secret, open] = [`secret-${randomBytes(8).toString('hex')}`, `open-${randomBytes(8).toString('hex')}`]
  const wire = await watchWire(nodeNamespacePaths, [secret, open], async () => {
    await fetchFrom(reader.ip, `${productpage}/api/v1/products/0?word=${secret}`)
    await fetchFrom(stranger.ip, `${details}/details/0?word=${open}`)
  })
  return report(wire, secret, open)
}

function report(
  { tunnelRecords, plaintext }: { tunnelRecords: number; plaintext: readonly string[] },
  secret: string,
  open: string,
): string {
  if (!plaintext.some((line) => line.startsWith(open))) throw new CheckError('the watch on the wire saw nothing at all')
  const leaked = plaintext.find((line) => line.startsWith(secret))
  if (leaked !== undefined) throw new CheckError(`plaintext between pods: ${leaked}`)
  if (tunnelRecords === 0) throw new CheckError('no TLS record passed on port 15008')
  return `${tunnelRecords} packets with TLS records seen`
}

async function sourceAddress({ client }: SampleCheckOptions): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const fetched = await fetchFrom(reader.ip, `${productpage}/whoami`)
  const seen = (fetched.body as { client?: string } | undefined)?.client
  if (seen !== reader.ip)
    throw new CheckError(`the reader is ${reader.ip}, productpage saw ${seen ?? outcome(fetched)}`)
  return seen
}

async function identities({ client }: SampleCheckOptions): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const { items } = await client.list<KubeObject>(resources.pods, {
    namespace: 'istio-system',
    labelSelector: 'app=ztunnel',
  })
  const from = 'spiffe://cluster.local/ns/library/sa/reader'
  const to = 'spiffe://cluster.local/ns/bookinfo/sa/productpage'
  await fetchFrom(reader.ip, `${productpage}/health`)
  await eventually(settleMs, async () => {
    for (const { metadata } of items) {
      const response = await client.request(`/api/v1/namespaces/istio-system/pods/${metadata.name}/log?tailLines=400`)
      const lines = (await response.text()).split('\n')
      if (lines.some((line) => line.includes(from) && line.includes(to) && line.includes('connection complete')))
        return true
    }
    return { not: `no access log line names ${from} and ${to}` }
  })
  return `${from} to ${to}`
}

/** The words of a refused connection. Throws a CheckError for an answer, and for a failure that is no refusal. */
function refusal(where: string, fetched: Fetched): string {
  if (fetched.error === undefined) throw new CheckError(`${where} answered ${outcome(fetched)}`)
  if (/ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|time/i.test(fetched.error))
    throw new CheckError(`${where} was not reached at all: ${fetched.error}`)
  return fetched.error
}

async function strictRefuses({ client }: SampleCheckOptions): Promise<string> {
  const stranger = await podOf(client, 'outside', 'stranger')
  return refusal(productpage, await fetchFrom(stranger.ip, `${productpage}/health`))
}

async function permissiveServes({ client }: SampleCheckOptions): Promise<string> {
  const stranger = await podOf(client, 'outside', 'stranger')
  const fetched = await fetchFrom(stranger.ip, `${details}/details/0`)
  if (fetched.status !== 200) throw new CheckError(`${details}: ${outcome(fetched)}`)
  return 'HTTP 200'
}

async function allowListed({ client }: SampleCheckOptions): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const ratings = 'http://ratings.bookinfo:9080'
  return refusal(ratings, await fetchFrom(reader.ip, `${ratings}/ratings/0`))
}

const selector = { matchLabels: { app: 'details' } }
const principal = (of: string): unknown => [{ from: [{ source: { principals: [`cluster.local/ns/${of}`] } }] }]

function denyPolicy(options: SampleCheckOptions): Promise<string> {
  return underPolicy(options, 'check-deny', { selector, action: 'DENY', rules: principal('library/sa/reader') })
}

function allowPolicy(options: SampleCheckOptions): Promise<string> {
  return underPolicy(options, 'check-allow', { selector, action: 'ALLOW', rules: principal('bookinfo/sa/productpage') })
}

/** A reader's connections to details before, under, and after a policy that shuts it out while productpage goes on. */
async function underPolicy({ client }: SampleCheckOptions, name: string, spec: unknown): Promise<string> {
  const reader = await podOf(client, 'library', 'reader')
  const key = { namespace: 'library', name }
  const served = async (): Promise<true | { not: string }> => {
    const fetched = await fetchFrom(reader.ip, `${details}/details/0`)
    return fetched.status === 200 ? true : { not: `details: ${outcome(fetched)}` }
  }
  await client.delete(resources.authorizationPolicies, key)
  await eventually(settleMs, served)
  const held = await holdFrom(reader.ip, 'details.library:9080')
  if (held.state !== 'open') throw new CheckError(`a connection to details could not be opened: it is ${held.state}`)
  let stopped: { afterMs: number }
  let cutAfterMs = 0
  try {
    const object: KubeObject = {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { ...key },
      spec,
    }
    await client.create(resources.authorizationPolicies, object)
    const since = Date.now()
    stopped = await eventually(settleMs, async () => {
      const fetched = await fetchFrom(reader.ip, `${details}/details/0`)
      return fetched.error === undefined ? { not: 'a new connection still passes' } : true
    })
    const closed = await eventually<{ at: number }>(settleMs, async () => {
      const { state, closedAt } = await heldState(reader.ip, held.id)
      return state === 'closed' ? { at: closedAt ?? since } : { not: 'the established connection is still open' }
    })
    cutAfterMs = Math.max(0, closed.value.at - since)
    const page = await fetchFrom(reader.ip, `${productpage}/api/v1/products/0`)
    const { error } = (page.body as Page | undefined)?.details ?? { error: outcome(page) }
    if (error !== undefined) throw new CheckError(`productpage, which may pass, does not: ${error}`)
  } finally {
    await client.delete(resources.authorizationPolicies, key)
  }
  const restored = await eventually(settleMs, served)
  return `new ones stopped after ${stopped.afterMs} ms, the established one after ${cutAfterMs} ms, restored after ${restored.afterMs} ms`
}
