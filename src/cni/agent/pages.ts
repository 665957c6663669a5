// The node agent's HTTP pages: health and metrics.
import { createServer, type Server } from 'node:http'

export interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Serves the pages on all addresses until disposed. */
export async function servePages(
  port: number,
  page: (path: string, accept: string | undefined) => Page | undefined | Promise<Page | undefined>,
): Promise<AsyncDisposable & { readonly port: number }> {
  const answer = async (path: string, accept: string | undefined): Promise<Page> => {
    try {
      return (await page(path, accept)) ?? { status: 404, type: 'text/plain', body: 'not found' }
    } catch (error) {
      return { status: 500, type: 'text/plain', body: (error as Error).message }
    }
  }
  const server: Server = createServer((request, response) => {
    // Not through URL, which throws for some of what a client may send.
    const [path = ''] = (request.url ?? '').split('?')
    void answer(path, request.headers.accept).then(({ status, type, body }) =>
      response.writeHead(status, { 'content-type': type }).end(body),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
