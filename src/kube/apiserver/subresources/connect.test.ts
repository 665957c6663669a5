import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { type Json, startTestApi, type TestApi } from '../testing.ts'

let api: TestApi
const asked: { method: string; url: string; headers: NodeJS.Dict<string | string[]>; client: string }[] = []

/** What stands for a kubelet: it echoes streams, and serves one log. */
const kubelet = createServer({ requestCert: true, rejectUnauthorized: true })

before(async () => {
  api = await startTestApi()
  const pki = (name: string) => readFileSync(join(api.stateDir, 'pki', name))
  kubelet.setSecureContext({ cert: pki('apiserver.crt'), key: pki('apiserver.key'), ca: pki('ca.crt') })
  const note = (request: Json) => {
    const client = (request.socket as TLSSocket).getPeerCertificate().subject.CN
    asked.push({ method: request.method, url: request.url, headers: request.headers, client: String(client) })
  }
  kubelet.on('request', (request, response) => {
    note(request)
    if (request.url?.includes('previous=true') === true) {
      response.writeHead(400, { 'content-type': 'text/plain' })
      response.end('previous terminated container "c" not found')
      return
    }
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.write('line 1\n')
    response.end('line 2\n')
  })
  kubelet.on('upgrade', (request, socket) => {
    note(request)
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Kept: a\r\nX-Kept: b\r\n\r\n',
    )
    socket.pipe(socket)
    socket.on('error', () => undefined)
  })
  kubelet.listen(0, '127.0.0.1')
  await once(kubelet, 'listening')
  const { port } = kubelet.address() as AddressInfo
  await api.ok('POST', '/api/v1/nodes', {
    metadata: { name: 'n' },
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  })
  await api.ok('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
  const containers = (...names: string[]) => names.map((name) => ({ name, image: 'host' }))
  const pods = '/api/v1/namespaces/default/pods'
  await api.ok('POST', pods, { metadata: { name: 'one' }, spec: { nodeName: 'n', containers: containers('c') } })
  await api.ok('POST', pods, { metadata: { name: 'two' }, spec: { nodeName: 'n', containers: containers('c', 'd') } })
  await api.ok('POST', pods, { metadata: { name: 'waiting' }, spec: { containers: containers('c') } })
})

after(async () => {
  kubelet.closeAllConnections()
  kubelet.close()
  await api[Symbol.asyncDispose]()
})

test('a log is read from the kubelet of the node, by the server and not by the user', async () => {
  asked.length = 0
  const answer = await api.send('GET', '/api/v1/namespaces/default/pods/one/log?tailLines=2', {
    headers: { authorization: '' },
  })
  assert.deepEqual([answer.code, answer.body], [200, 'line 1\nline 2\n'])
  assert.equal(asked[0]?.url, '/containerLogs/default/one/c?tailLines=2')
  assert.equal(asked[0]?.headers.authorization, undefined)
  assert.equal(asked[0]?.client, 'kube-apiserver-kubelet-client')
})

for (const [what, path, code, message] of [
  ['a pod without a node', 'waiting/log', 400, /does not have a host assigned/],
  ['a pod that is not there', 'none/log', 404, /pods "none" not found/],
  ['a container to be chosen', 'two/log', 400, /choose one of: \[c d\]/],
  ['a container that is not there', 'two/log?container=x', 400, /container x is not valid for pod two/],
  ['what the kubelet refuses', 'one/log?previous=true', 400, /previous terminated container "c" not found/],
  ['exec without an upgrade', 'one/exec?command=ls', 400, /Upgrade request required/],
] as const) {
  test(`${what} is answered with ${code}`, async () => {
    const answer = await api.send('GET', `/api/v1/namespaces/default/pods/${path}`)
    assert.equal(answer.code, code)
    assert.match(answer.body.message, message)
  })
}

function open(path: string, withCertificate = true): TLSSocket {
  const { host, port } = api.server.addresses[0] ?? { host: '', port: 0 }
  const pki = (name: string) => readFileSync(join(api.stateDir, 'pki', name))
  const identity = withCertificate ? { cert: pki('admin.crt'), key: pki('admin.key') } : {}
  const socket = connect({ host, port, ca: pki('ca.crt'), ALPNProtocols: ['http/1.1'], ...identity })
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Stream-Protocol-Version: v5.channel.k8s.io\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n`,
  )
  return socket
}

async function readUntil(socket: TLSSocket, pattern: RegExp): Promise<string> {
  let text = ''
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    if (pattern.test(text)) return text
  }
  return text
}

test('a stream into a container passes both ways, with its headers', async () => {
  asked.length = 0
  const socket = open(
    '/api/v1/namespaces/default/pods/two/exec?container=d&command=a&command=b%20c&stdin=true&stdout=true&tty=true',
  )
  const head = await readUntil(socket, /\r\n\r\n/)
  assert.match(head, /^HTTP\/1\.1 101 /)
  assert.match(head, /X-Kept: a\r\nX-Kept: b\r\n/)
  assert.equal(asked[0]?.url, '/exec/default/two/d?command=a&command=b+c&input=1&output=1&tty=1')
  assert.match(String(asked[0]?.headers['x-stream-protocol-version']), /v5.*v4/)
  socket.write('hello')
  assert.match(await readUntil(socket, /hello/), /hello/)
  socket.end()
  await once(socket, 'close')
})

test('port-forward goes to the pod', async () => {
  asked.length = 0
  const socket = open('/api/v1/namespaces/default/pods/one/portforward?ports=80')
  await readUntil(socket, /\r\n\r\n/)
  assert.equal(asked[0]?.url, '/portForward/default/one?ports=80')
  socket.destroy()
})

test('a stranger gets no stream, and no upgrade leads elsewhere', async () => {
  const stranger = open('/api/v1/namespaces/default/pods/one/exec?command=ls', false)
  assert.match(await readUntil(stranger, /\}$/), /^HTTP\/1\.1 403 /)
  const elsewhere = open('/api/v1/namespaces/default/pods/one')
  assert.match(await readUntil(elsewhere, /\}$/), /^HTTP\/1\.1 400 /)
  stranger.destroy()
  elsewhere.destroy()
})

test('what is of the whole cluster is not found in a namespace, where a right in that namespace would lead to it', async () => {
  asked.length = 0
  const inNamespace = (group: string, rest: string) => `${group}/namespaces/default/${rest}`
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'x' } }
  for (const [method, path, body] of [
    ['GET', inNamespace('/api/v1', 'nodes/n/proxy/pods'), undefined],
    ['POST', inNamespace('/api/v1', 'nodes/n/proxy/run/default/one/c'), {}],
    ['GET', inNamespace('/api/v1', 'nodes/n'), undefined],
    ['POST', inNamespace('/apis/authentication.k8s.io/v1', 'tokenreviews'), review],
    ['GET', inNamespace('/apis/certificates.k8s.io/v1', 'certificatesigningrequests/x/approval'), undefined],
  ] as const) {
    const { code, body: answer } = await api.send(method, path, body === undefined ? {} : { body })
    assert.deepEqual([code, answer.message], [404, 'the server could not find the requested resource'], path)
  }
  const socket = open(inNamespace('/api/v1', 'nodes/n/proxy/exec/default/one/c'))
  assert.match(await readUntil(socket, /\}$/), /^HTTP\/1\.1 404 /)
  socket.destroy()
  assert.deepEqual(asked, [])
  assert.equal((await api.send('GET', '/api/v1/nodes/n/proxy/pods')).code, 200)
})
