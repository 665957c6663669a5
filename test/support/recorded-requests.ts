// A way to an API server that notes what is asked through it: one for each process whose requests are to be told apart.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { loadConnection } from '../../src/kube/index.ts'

export interface RecordedRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
}

export interface RecordedRequests extends AsyncDisposable {
  /** By which the server is reached this way; nothing else need be known. */
  readonly kubeconfig: string
  readonly requests: readonly RecordedRequest[]
}

/** With the rights of the kubeconfig. The new one is written beside it, under this name. */
export async function recordRequests(kubeconfig: string, name: string): Promise<RecordedRequests> {
  const connection = await loadConnection({ kubeconfig })
  const { ca, cert, key } = await connection.tls()
  const agent = new Agent({ keepAlive: true, ca, cert, key })
  const requests: RecordedRequest[] = []

  async function relay(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const { method = '', url = '/' } = from
    requests.push({ method, path: url.split('?')[0] ?? '' })
    const authorization = await connection.authorization()
    const headers = { ...from.headers, ...(authorization === undefined ? {} : { authorization }) }
    const onward = request(new URL(url, connection.server), { agent, method, headers }, (response) => {
      to.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(to)
      response.once('error', () => to.destroy())
    })
    onward.once('error', () => to.destroy())
    to.once('close', () => onward.destroy())
    from.pipe(onward)
  }

  const server = createServer((from, to) => void relay(from, to))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const path = `${kubeconfig}.${name}`
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'recorded',
    contexts: [{ name: 'recorded', context: { cluster: 'recorded', user: 'recorded' } }],
    clusters: [{ name: 'recorded', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'recorded', user: {} }],
  }
  writeFileSync(path, JSON.stringify(config))
  return {
    kubeconfig: path,
    requests,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
      agent.destroy()
    },
  }
}
