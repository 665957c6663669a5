// One request and its response, over HTTP/1.1 or HTTP/2.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { ApiError } from '../errors.ts'

export type HttpRequest = IncomingMessage | Http2ServerRequest

/** What is used of both kinds of response. */
export interface HttpResponse {
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly destroyed?: boolean
  writeHead(status: number, headers: Record<string, string | readonly string[]>): unknown
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
  flushHeaders(): void
  on(event: 'close' | 'drain', listener: () => void): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
  off(event: 'close' | 'drain', listener: () => void): unknown
}

/** Both classes have these members; their overloads only hide it from the type checker. */
export function asResponse(response: ServerResponse | Http2ServerResponse): HttpResponse {
  return response as unknown as HttpResponse
}

export interface Exchange {
  readonly request: HttpRequest
  readonly response: HttpResponse
  readonly method: string
  readonly url: URL
  /** Sent as Warning headers. */
  readonly warnings: string[]
}

const maxBodyBytes = 3 * 1024 * 1024

/** The whole body. Throws ApiError 413 when it is too large. */
export async function readBody(request: HttpRequest): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // Not destroyed when it is too large: the refusal goes out on the same connection.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Buffer
    size += bytes.length
    if (size > maxBodyBytes) {
      throw new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBodyBytes} bytes`)
    }
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** Resolves when more can be written, or the response is closed. */
export function drained(response: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
