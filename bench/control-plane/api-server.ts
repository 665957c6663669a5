// Lists and watches of a Kubernetes API over HTTPS, from objects in memory, as fast as they can be read: what is measured is the control plane.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createTestPki } from '../../test/support/test-pki.ts'

export interface BenchApi extends AsyncDisposable {
  readonly directory: string
  readonly kubeconfig: string
  /** Puts an object and tells the watches of it. */
  put(object: KubeObject): void
  /** The decoded Secret of the control plane's root. */
  secret(namespace: string, name: string): Readonly<Record<string, string>> | undefined
}

type Watch = (key: string, type: string, json: string) => void
type Fits = (key: string, json: string) => boolean

/** One collection: objects as JSON text, by `namespace/name`. */
interface Shelf {
  readonly objects: Map<string, string>
  readonly watches: Set<Watch>
}

const pathOfKind = new Map(
  Object.values(resources).map(({ kind, group, version, plural }) => [
    `${group === '' ? '' : `${group}/`}${version} ${kind}`,
    group === '' ? `/api/${version}/${plural}` : `/apis/${group}/${version}/${plural}`,
  ]),
)

export async function startBenchApi(): Promise<BenchApi> {
  const directory = mkdtempSync(join(tmpdir(), 'cp-bench-'))
  const pki = await createTestPki()
  const serving = await pki.issue('127.0.0.1')
  const shelves = new Map<string, Shelf>()
  let version = 1000

  function shelfOf(path: string): Shelf {
    const known = shelves.get(path)
    if (known !== undefined) return known
    const shelf: Shelf = { objects: new Map(), watches: new Set() }
    shelves.set(path, shelf)
    return shelf
  }

  function store(path: string, object: KubeObject): string {
    version += 1
    const { namespace = '', name } = object.metadata
    const json = JSON.stringify({
      ...object,
      metadata: { uid: name, ...object.metadata, resourceVersion: `${version}` },
    })
    const shelf = shelfOf(path)
    const type = shelf.objects.has(`${namespace}/${name}`) ? 'MODIFIED' : 'ADDED'
    shelf.objects.set(`${namespace}/${name}`, json)
    for (const watch of shelf.watches) watch(`${namespace}/${name}`, type, json)
    return json
  }

  function list(shelf: Shelf, fits: Fits, url: URL, response: ServerResponse): void {
    const limit = Number(url.searchParams.get('limit') ?? 0) || Infinity
    const from = Number(url.searchParams.get('continue') ?? 0)
    const items = [...shelf.objects].filter(([key, json]) => fits(key, json))
    const page = items.slice(from, from + limit).map(([, json]) => json)
    const more = from + page.length < items.length ? `,"continue":"${from + page.length}"` : ''
    response.setHeader('content-type', 'application/json')
    response.end(`{"kind":"List","metadata":{"resourceVersion":"${version}"${more}},"items":[${page.join(',')}]}`)
  }

  function watch(shelf: Shelf, fits: Fits, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const tell: Watch = (key, type, json) => {
      if (fits(key, json)) response.write(`{"type":"${type}","object":${json}}\n`)
    }
    shelf.watches.add(tell)
    response.on('close', () => shelf.watches.delete(tell))
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://bench')
    const parts = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?/.exec(
      url.pathname,
    )
    const [, prefix = '', namespace = '', plural = '', name] = parts ?? []
    const shelf = shelfOf(`${prefix}/${plural}`)
    const body = request.method === 'GET' ? undefined : JSON.parse(await text(request))
    const reply = (status: number, json: string): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(json)
    }
    if (plural === 'tokenreviews') return reply(201, JSON.stringify({ ...body, status: nodeProxy }))
    if (request.method === 'POST') return reply(201, store(`${prefix}/${plural}`, body))
    if (request.method === 'PUT') return reply(200, store(`${prefix}/${plural}`, body))
    if (name !== undefined) {
      const found = shelf.objects.get(`${namespace}/${name}`)
      return found === undefined ? reply(404, '{"kind":"Status","code":404,"reason":"NotFound"}') : reply(200, found)
    }
    if (url.searchParams.get('watch') === 'true') return watch(shelf, fitting(namespace, url), response)
    list(shelf, fitting(namespace, url), url, response)
  }

  const server = createServer({ key: serving.privateKey, cert: serving.chain }, (request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const kubeconfig = join(directory, 'kubeconfig')
  writeFileSync(kubeconfig, kubeconfigText(`https://127.0.0.1:${port}`, pki.roots))

  return {
    directory,
    kubeconfig,
    put(object) {
      const path = pathOfKind.get(`${object.apiVersion} ${object.kind}`)
      if (path === undefined) throw new TypeError(`no path for ${object.apiVersion} ${object.kind}`)
      store(path, object)
    },
    secret(namespace, name) {
      const json = shelfOf('/api/v1/secrets').objects.get(`${namespace}/${name}`)
      if (json === undefined) return undefined
      const { data } = JSON.parse(json) as { data: Record<string, string> }
      return Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
      )
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      rmSync(directory, { recursive: true })
    },
  }
}

/** The selectors that the control plane uses: a name, and equal labels. */
function fitting(namespace: string, url: URL): Fits {
  const name = /metadata\.name=([^,]+)/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1]
  const labels = (url.searchParams.get('labelSelector') ?? '').split(',').filter((one) => one !== '')
  return (key, json) => {
    if (namespace !== '' && !key.startsWith(`${namespace}/`)) return false
    if (name !== undefined && !key.endsWith(`/${name}`)) return false
    if (labels.length === 0) return true
    const own = (JSON.parse(json) as KubeObject).metadata.labels ?? {}
    return labels.every((label) => own[label.split('=')[0] ?? ''] === label.split('=').at(-1))
  }
}

const nodeProxy = {
  authenticated: true,
  audiences: ['istio-ca'],
  user: {
    username: 'system:serviceaccount:istio-system:ztunnel',
    groups: ['system:serviceaccounts', 'system:authenticated'],
  },
}

function kubeconfigText(server: string, roots: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [
      { name: 'bench', cluster: { server, 'certificate-authority-data': Buffer.from(roots).toString('base64') } },
    ],
    users: [{ name: 'bench', user: { token: 'bench' } }],
  })
}
