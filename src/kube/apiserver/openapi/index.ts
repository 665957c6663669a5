// Serves OpenAPI of all kinds, made when first asked for and again when the kinds have changed.
import { gzipSync } from 'node:zlib'
import { loadKubernetesDefinitions, type Schema } from '../../../api/index.ts'
import type { ApiExtension, KindRegistry, PathHandler, PathResponse } from '../types.ts'
import { documentsV3, documentV2, type GroupDocument, indexV3 } from './documents.ts'
import { encodeDocument } from './protobuf.ts'

const protobufType = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'

interface Made {
  readonly generation: number
  json?: string
  protobuf?: Uint8Array
  v3?: ReadonlyMap<string, GroupDocument>
}

export function createOpenApiExtension(): ApiExtension {
  let shared: ReadonlyMap<string, Schema> = new Map()
  let made: Made | undefined

  const current = (kinds: KindRegistry): Made => {
    if (made?.generation !== kinds.generation) made = { generation: kinds.generation }
    return made
  }
  const v3 = (kinds: KindRegistry): ReadonlyMap<string, GroupDocument> => {
    const documents = current(kinds)
    documents.v3 ??= documentsV3(kinds.list(), shared)
    return documents.v3
  }
  const paths: readonly PathHandler[] = [
    {
      path: '/openapi/v2',
      async handle({ core, headers }) {
        const documents = current(core.kinds)
        const accept = headers.accept ?? ''
        if (accept.includes('proto-openapi.spec.v2')) {
          documents.protobuf ??= encodeDocument(documentV2(core.kinds.list(), shared))
          return compressed(headers['accept-encoding'], {
            status: 200,
            // As Kubernetes answers: the '@' of the request is not allowed in a media type, and Go clients refuse it.
            contentType: protobufType.replace('@', '.'),
            body: documents.protobuf,
          })
        }
        documents.json ??= JSON.stringify(documentV2(core.kinds.list(), shared))
        return compressed(headers['accept-encoding'], json(documents.json))
      },
    },
    { path: '/openapi/v3', handle: async ({ core }) => json(JSON.stringify(indexV3(v3(core.kinds)))) },
    {
      path: '/openapi/v3/',
      async handle({ core, path, headers }) {
        const document = v3(core.kinds).get(path.slice('/openapi/v3/'.length).replace(/\/$/, ''))
        if (document === undefined) return { status: 404, contentType: 'text/plain', body: '404 page not found\n' }
        const etag = `"${document.hash}"`
        if (headers['if-none-match'] === etag) return { ...json(''), status: 304, headers: { etag } }
        return compressed(headers['accept-encoding'], { ...json(document.json), headers: { etag } })
      },
    },
  ]
  return {
    name: 'openapi',
    paths,
    async start() {
      shared = await loadKubernetesDefinitions()
    },
  }
}

function json(body: string): PathResponse {
  return { status: 200, contentType: 'application/json', body }
}

function compressed(accepted: string | string[] | undefined, response: PathResponse): PathResponse {
  if (!String(accepted ?? '').includes('gzip')) return response
  return {
    ...response,
    headers: { ...response.headers, 'content-encoding': 'gzip', vary: 'Accept, Accept-Encoding' },
    body: gzipSync(response.body, { level: 1 }),
  }
}
