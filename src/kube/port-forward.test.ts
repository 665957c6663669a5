import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { WebSocketServer } from 'ws'
import { type Connection, requestPod } from './index.ts'

describe('a request to a pod', { timeout: 20_000 }, () => {
  let pod: Server
  let api: Server
  let connection: Connection
  const asked: string[] = []
  const hosts: (string | undefined)[] = []

  before(async () => {
    pod = createServer((request, response) => {
      hosts.push(request.headers.host)
      response.writeHead(request.url === '/large' ? 200 : 404)
      response.end(request.url === '/large' ? 'x'.repeat(300_000) : 'no such page')
    }).listen(0, '127.0.0.1')
    await once(pod, 'listening')
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'v4.channel.k8s.io' })
    api = createServer().listen(0, '127.0.0.1')
    api.on('upgrade', (request, socket, head) => {
      asked.push(`${request.headers.authorization} ${request.url}`)
      if (request.url?.includes('/missing/') === true) {
        const body = JSON.stringify({
          kind: 'Status',
          message: 'pods "missing" not found',
          reason: 'NotFound',
          code: 404,
        })
        socket.end(`HTTP/1.1 404 Not Found\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
        return
      }
      sockets.handleUpgrade(request, socket, head, (upgraded) => {
        const port = Buffer.from([0x98, 0x3a])
        upgraded.send(Buffer.concat([Buffer.of(0), port]))
        upgraded.send(Buffer.concat([Buffer.of(1), port]))
        if (request.url?.includes('/closed/') === true) {
          upgraded.send(Buffer.concat([Buffer.of(1), Buffer.from('connection refused')]))
          return
        }
        const target = connect((pod.address() as AddressInfo).port, '127.0.0.1')
        upgraded.on('message', (message: Buffer) => target.write(message.subarray(1)))
        upgraded.on('close', () => target.destroy())
        target.on('data', (chunk) => upgraded.send(Buffer.concat([Buffer.of(0), chunk])))
        target.on('close', () => upgraded.close())
      })
    })
    await once(api, 'listening')
    connection = {
      server: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
      namespace: 'default',
      insecureSkipTlsVerify: false,
      tlsServerName: undefined,
      tls: async () => ({ ca: undefined, cert: undefined, key: undefined }),
      authorization: async () => 'Bearer t',
    }
  })
  after(() => {
    for (const server of [pod, api]) {
      server.closeAllConnections()
      server.close()
    }
  })

  test('is answered by what listens in it, as if it came from there', async () => {
    const place = { namespace: 'ns', pod: 'p', port: 15_000 }
    const { status, body } = await requestPod(connection, place, { path: '/large' })
    assert.equal(status, 200)
    assert.equal(body.length, 300_000)
    assert.deepEqual(asked, ['Bearer t /api/v1/namespaces/ns/pods/p/portforward?ports=15000'])
    assert.deepEqual(hosts, ['localhost:15000'])
    assert.deepEqual(await requestPod(connection, place, { path: '/' }), { status: 404, body: 'no such page' })
  })

  test('fails with what the API server or the node says', async () => {
    const request = (pod: string) => requestPod(connection, { namespace: 'ns', pod, port: 1 }, { path: '/' })
    await assert.rejects(request('missing'), { code: 404, message: /pods "missing" not found/ })
    await assert.rejects(request('closed'), {
      reason: 'PodUnreachable',
      message: /port 1 of pod ns\/closed: connection refused/,
    })
  })
})
