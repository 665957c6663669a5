import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type net from 'node:net'
import { after, before, suite, test } from 'node:test'
import { security } from '../../src/proto/index.ts'
import { eventually } from '../support/eventually.ts'
import { canRunLab, createMeshLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'

const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
const server = { name: 'server', ip: '10.77.2.2', node: 'n2' }
const outsider = { name: 'outsider', ip: '10.77.2.3' }
const vip = '10.78.0.9'
const port = 8080

suite('two node proxies, two pods', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  let clientProxy: LabProxy
  let serverProxy: LabProxy
  const inboundPeers: (string | undefined)[] = []
  let behave: (socket: net.Socket) => void = (socket) => void socket.pipe(socket)

  before(async () => {
    lab = await createMeshLab({ pods: [client, server, outsider], nodes: ['n1', 'n2'] })
    for (const pod of [client, server]) {
      lab.controlPlane.setWorkload({
        uid: `c1//Pod/default/${pod.name}`,
        name: pod.name,
        namespace: 'default',
        serviceAccount: pod.name,
        trustDomain: 'cluster.local',
        node: pod.node,
        clusterId: 'c1',
        tunnelProtocol: 1,
        addresses: [bytesOf(pod.ip)],
        services:
          pod === server
            ? { 'default/echo.default.svc.cluster.local': { ports: [{ servicePort: 80, targetPort: port }] } }
            : {},
      })
    }
    lab.controlPlane.setService({
      name: 'echo',
      namespace: 'default',
      hostname: 'echo.default.svc.cluster.local',
      addresses: [{ address: bytesOf(vip) }],
      ports: [{ servicePort: 80, targetPort: port }],
    })
    ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1'), lab.startProxy('n2')])
    await lab.listen('server', port, (socket) => {
      inboundPeers.push(socket.remoteAddress)
      socket.on('error', () => undefined)
      behave(socket)
    })
  })
  after(() => lab?.[Symbol.asyncDispose]())

  const call = async (text: string, to = { ip: vip, port: 80 }, from = 'client') => {
    const socket = await lab.connect(from, to)
    socket.end(text)
    return (await readAll(socket)).toString()
  }

  test('a call to the service is answered; the application sees the real source address', async () => {
    behave = (socket) => void socket.pipe(socket)
    assert.equal(await call('hello'), 'hello')
    assert.equal(inboundPeers.at(-1), client.ip)
    const line = await serverProxy.logged(/connection complete.*direction="inbound"/)
    assert.match(line, /src\.addr=10\.77\.2\.1:\d+ src\.workload="client"/)
    assert.match(line, /src\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/client"/)
    assert.match(line, /dst\.hbone_addr=10\.77\.2\.2:8080/)
    const out = await clientProxy.logged(/connection complete.*direction="outbound"/)
    assert.match(out, /dst\.service="echo\.default\.svc\.cluster\.local"/)
    assert.match(out, /dst\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/server"/)
    assert.match(out, /bytes_sent=5 bytes_recv=5/)
  })

  test('a call to the pod address goes the same way', async () => {
    assert.equal(await call('direct', { ip: server.ip, port }), 'direct')
    assert.equal(inboundPeers.at(-1), client.ip)
  })

  test('on the wire there is TLS on port 15008 and never the plain bytes', async () => {
    const capture = spawn(
      'ip',
      ['netns', 'exec', lab.namespaceName('fabric'), 'tcpdump', '-U', '-n', '-i', 'br0', '-w', '-', 'tcp'],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const chunks: Buffer[] = []
    capture.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(capture.stderr, 'data')
    const secret = `secret-${randomBytes(16).toString('hex')}`
    assert.equal(await call(secret), secret)
    const captured = () => Buffer.concat(chunks)
    while (!captured().includes(hboneData)) await once(capture.stdout, 'data')
    capture.kill('SIGINT')
    await once(capture, 'close')
    assert.equal(captured().includes(secret), false)
    assert.equal(portsOf(captured()).has(port), false)
    assert.ok(portsOf(captured()).has(15008))
  })

  test('100 MB arrive unchanged', async () => {
    const received = createHash('sha256')
    let bytes = 0
    behave = (socket) => {
      socket.on('data', (chunk: Buffer) => {
        received.update(chunk)
        bytes += chunk.length
      })
      socket.on('end', () => socket.end(received.digest()))
    }
    const sent = createHash('sha256')
    const block = randomBytes(1024 * 1024)
    const socket = await lab.connect('client', { ip: vip, port: 80 })
    for (let index = 0; index < 100; index += 1) {
      block.writeUInt32BE(index)
      sent.update(block)
      if (!socket.write(Buffer.from(block))) await once(socket, 'drain')
    }
    socket.end()
    assert.deepEqual(await readAll(socket), sent.digest())
    assert.equal(bytes, 100 * 1024 * 1024)
  })

  test('each direction closes by itself', async () => {
    behave = (socket) => {
      socket.resume()
      socket.on('end', () => {
        socket.write('after your end ')
        setImmediate(() => socket.end('and mine'))
      })
    }
    assert.equal(await call('question'), 'after your end and mine')
  })

  test('a server that speaks first is heard', async () => {
    behave = (socket) => {
      socket.write('220 ready\r\n')
      socket.pipe(socket)
    }
    const socket = await lab.connect('client', { ip: vip, port: 80 })
    const greeting = once(socket, 'data')
    socket.resume()
    assert.equal(String((await greeting)[0]), '220 ready\r\n')
    socket.destroy()
  })

  test('a reset by the server reaches the client as one', async () => {
    behave = (socket) => void socket.once('data', () => socket.resetAndDestroy())
    const socket = await lab.connect('client', { ip: vip, port: 80 })
    socket.write('x')
    socket.resume()
    const [error] = await once(socket, 'error')
    assert.equal(error.code, 'ECONNRESET')
  })

  test('a thousand connections at once', async () => {
    behave = (socket) => void socket.pipe(socket)
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => lab.connect('client', { ip: vip, port: 80 })))
    const answers = await Promise.all(
      sockets.map(async (socket, index) => {
        const text = `connection ${index}`
        socket.write(text)
        const answer = once(socket, 'data')
        socket.resume()
        return String((await answer)[0]) === text
      }),
    )
    assert.equal(answers.filter(Boolean).length, 1000)
    await Promise.all(
      sockets.map((socket) => {
        socket.end()
        return once(socket, 'close')
      }),
    )
  })

  test('a destination outside the mesh is passed through', async () => {
    await lab.listen('outsider', 9000, (socket) => socket.end(`you are ${socket.remoteAddress}`))
    assert.equal(await call('', { ip: outsider.ip, port: 9000 }), `you are ${client.ip}`)
  })

  test('a client outside the mesh reaches the pod in plain text', async () => {
    behave = (socket) => void socket.pipe(socket)
    assert.equal(await call('plain', { ip: server.ip, port }, 'outsider'), 'plain')
    assert.equal(inboundPeers.at(-1), outsider.ip)
  })

  test('a refused port looks refused, and the proxy says why', async () => {
    const socket = await lab.connect('client', { ip: server.ip, port: 8099 })
    assert.equal((await readAll(socket)).length, 0)
    socket.end()
    await serverProxy.logged(/connection complete.*dst\.hbone_addr=10\.77\.2\.2:8099.*error="connection failed/)
    await clientProxy.logged(/connection complete.*:8099.*error="http status: 503 Service Unavailable"/)
  })

  test('a DENY policy ends an established connection and refuses new ones; without it traffic is back', async () => {
    behave = (socket) => void socket.pipe(socket)
    const socket = await lab.connect('client', { ip: vip, port: 80 })
    socket.on('error', () => undefined)
    socket.write('before')
    const echoed = once(socket, 'data')
    socket.resume()
    await echoed
    const closed = new Promise((resolve) => socket.once('close', resolve))
    lab.controlPlane.setPolicy({
      name: 'deny-client',
      namespace: 'default',
      scope: security.Scope.NAMESPACE,
      action: security.Action.DENY,
      groups: [
        {
          rules: [
            {
              matches: [
                { principals: [{ matchType: { case: 'exact', value: 'cluster.local/ns/default/sa/client' } }] },
              ],
            },
          ],
        },
      ],
    })
    await closed
    await serverProxy.logged(/connection closed due to policy change/)
    // Reset when it had sent something before the proxy let go of it, just ended otherwise.
    const refused = await call('denied').catch((error) => error.code)
    assert.ok(refused === 'ECONNRESET' || refused === '', `the refused call gave ${refused}`)
    await serverProxy.logged(/connection closed due to policy rejection: explicitly denied by: default\/deny-client/)
    await clientProxy.logged(/error="http status: 401 Unauthorized"/)
    lab.controlPlane.removePolicy('default/deny-client')
    await eventually(async () => (await call('again').catch(() => '')) === 'again', 'an answer')
  })

  test('SIGTERM: the connection in progress may end, then the proxy does', async () => {
    behave = (socket) => void socket.pipe(socket)
    const socket = await lab.connect('client', { ip: vip, port: 80 })
    socket.write('one')
    const first = once(socket, 'data')
    socket.resume()
    await first
    const stopped = serverProxy.stop()
    await serverProxy.logged(/shutting down/)
    const last = once(socket, 'data')
    socket.write('two')
    assert.equal(String((await last)[0]), 'two')
    socket.end()
    assert.equal(await stopped, 0)
  })
})

const hboneData = Buffer.from([0x17, 0x03, 0x03])

const bytesOf = (ip: string) => Uint8Array.from(ip.split('.').map(Number))

async function readAll(socket: net.Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Every TCP port in a pcap file of Ethernet frames with IPv4. */
function portsOf(pcap: Buffer): Set<number> {
  const ports = new Set<number>()
  for (let at = 24; at + 16 <= pcap.length; ) {
    const length = pcap.readUInt32LE(at + 8)
    const frame = pcap.subarray(at + 16, at + 16 + length)
    at += 16 + length
    if (frame.length < 38 || frame.readUInt16BE(12) !== 0x0800 || frame[23] !== 6) continue
    const tcp = 14 + ((frame[14] ?? 0) & 0x0f) * 4
    if (frame.length < tcp + 4) continue
    ports.add(frame.readUInt16BE(tcp)).add(frame.readUInt16BE(tcp + 2))
  }
  return ports
}
