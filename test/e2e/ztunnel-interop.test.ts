// The tunnels of the node proxy against peers that share no code with it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import type net from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { envoyFiles, envoyMissing, startEnvoy, tunnelClient, tunnelServer } from '../support/envoy.ts'
import { eventually } from '../support/eventually.ts'
import { answerBack } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, exchange } from '../support/mesh-lab-content.ts'
import { encodeFrame, flags, frameTypes } from '../support/raw-http2.ts'
import { connectBlock, openRawTunnels, type RawTunnelClient } from '../support/raw-tunnel-client.ts'

const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
const server = { name: 'server', ip: '10.77.2.2', node: 'n1' }
/** Outside the mesh, with certificates of the mesh. */
const stranger = { name: 'stranger', ip: '10.77.2.3' }
const gateway = { name: 'gateway', ip: '10.77.2.4' }
const identityOf = (name: string, trustDomain = 'cluster.local') => `spiffe://${trustDomain}/ns/default/sa/${name}`
const hbone = { ip: server.ip, port: 15008 }
const application = `${server.ip}:8080`

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

suite('tunnels with other implementations', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  let proxy: LabProxy
  const seen: (string | undefined)[] = []

  before(async () => {
    lab = await createMeshLab({ pods: [client, server, stranger, gateway], nodes: ['n1'] })
    announcePod(lab, client)
    announcePod(lab, server)
    proxy = await lab.startProxy('n1')
    await lab.listen('server', 8080, (socket) => {
      seen.push(socket.remoteAddress)
      answerBack(socket)
    })
  })
  after(() => lab?.[Symbol.asyncDispose]())

  suite('a client written from the RFC', () => {
    const open = (settings?: Uint8Array): Promise<RawTunnelClient> =>
      openRawTunnels(lab, {
        from: stranger.name,
        to: server.ip,
        as: identityOf('stranger'),
        expects: identityOf('server'),
        ...(settings === undefined ? {} : { settings }),
      })
    const headers = (stream: number, block: Buffer, more = 0) =>
      encodeFrame(frameTypes.headers, stream, flags.endHeaders | more, block)

    test('carries bytes both ways and closes each way by itself', async () => {
      await using peer = await open()
      peer.send(headers(1, connectBlock(application)))
      assert.deepEqual(await peer.answer(1), { status: 200, ended: false })
      peer.send(encodeFrame(frameTypes.data, 1, 0, Buffer.from('hello')))
      assert.equal(await peer.read(1, 5), 'hello')
      assert.equal(seen.at(-1), stranger.ip)
      peer.send(encodeFrame(frameTypes.data, 1, flags.endStream, Buffer.from(' and bye')))
      assert.equal(await peer.read(1, 8), ' and bye')
      await peer.next(
        ({ stream, flags: has }) => stream === 1 && (has & flags.endStream) !== 0,
        'the end of the stream',
      )
    })

    test('takes everything the RFC allows a client to send', async () => {
      await using peer = await open()
      const block = connectBlock(application)
      const parts = [block.subarray(0, 3), block.subarray(3, 9), block.subarray(9)]
      const [first = block, second = block, third = block] = parts
      const everything = Buffer.concat([
        // Frames of unknown types and deprecated priorities are ignored.
        encodeFrame(0xfa, 0, 0xff, Buffer.from('unknown')),
        encodeFrame(frameTypes.priority, 3, 0, Buffer.from([0, 0, 0, 0, 15])),
        // Headers with padding and a priority, continued twice.
        encodeFrame(
          frameTypes.headers,
          1,
          flags.padded | flags.priority,
          Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 15]), first, Buffer.alloc(4)]),
        ),
        encodeFrame(frameTypes.continuation, 1, 0, second),
        encodeFrame(frameTypes.continuation, 1, flags.endHeaders, third),
        encodeFrame(
          frameTypes.data,
          1,
          flags.padded,
          Buffer.concat([Buffer.from([7]), Buffer.from('padded'), Buffer.alloc(7)]),
        ),
        encodeFrame(frameTypes.data, 1, 0),
        encodeFrame(frameTypes.data, 1, 0, Buffer.from('!')),
        encodeFrame(frameTypes.ping, 0, 0, Buffer.from('pingpong')),
      ])
      for (const byte of everything) peer.send(Uint8Array.of(byte))
      assert.equal((await peer.answer(1)).status, 200)
      assert.equal(await peer.read(1, 7), 'padded!')
      const pong = await peer.next(({ type, flags: has }) => type === frameTypes.ping && has === flags.ack, 'a pong')
      assert.equal(pong.payload.toString(), 'pingpong')
    })

    test('is sent no more than its windows allow', async () => {
      // SETTINGS_INITIAL_WINDOW_SIZE (4) of 10 bytes.
      await using peer = await open(Buffer.concat([Buffer.from([0, 4]), uint32(10)]))
      peer.send(headers(1, connectBlock(application)), encodeFrame(frameTypes.data, 1, 0, Buffer.alloc(25, 'x')))
      assert.equal(await peer.read(1, 10), 'x'.repeat(10))
      peer.send(encodeFrame(frameTypes.ping, 0, 0, Buffer.from('stillful')))
      await peer.next(({ type, flags: has }) => type === frameTypes.ping && has === flags.ack, 'a pong')
      assert.equal(
        peer.pending.some(({ type }) => type === frameTypes.data),
        false,
      )
      peer.send(encodeFrame(frameTypes.windowUpdate, 1, 0, uint32(10)))
      assert.equal(await peer.read(1, 10), 'x'.repeat(10))
      peer.send(encodeFrame(frameTypes.windowUpdate, 1, 0, uint32(100)))
      assert.equal(await peer.read(1, 5), 'x'.repeat(5))
    })

    test('gets windows for what was taken: far more than the first window arrives', async () => {
      await using peer = await open()
      peer.send(headers(1, connectBlock(application)))
      assert.equal((await peer.answer(1)).status, 200)
      const total = 24 * 1024 * 1024
      const chunk = Buffer.alloc(16 * 1024, 'y')
      // The stream's window is what the settings say; the connection's starts small and is widened by an update.
      const windows = { connection: 65_535, stream: 4 * 1024 * 1024 }
      let sent = 0
      let received = 0
      while (received < total) {
        while (sent < total && Math.min(windows.connection, windows.stream) >= chunk.length) {
          peer.send(encodeFrame(frameTypes.data, 1, 0, chunk))
          sent += chunk.length
          windows.connection -= chunk.length
          windows.stream -= chunk.length
        }
        const frame = await peer.next(() => true, 'the rest')
        if (frame.type === frameTypes.windowUpdate) {
          windows[frame.stream === 0 ? 'connection' : 'stream'] += frame.payload.readUInt32BE(0)
        } else if (frame.type === frameTypes.settings && frame.flags === 0) {
          peer.send(encodeFrame(frameTypes.settings, 0, flags.ack))
        } else if (frame.type === frameTypes.data && frame.payload.length > 0) {
          received += frame.payload.length
          const more = uint32(frame.payload.length)
          peer.send(encodeFrame(frameTypes.windowUpdate, 0, 0, more), encodeFrame(frameTypes.windowUpdate, 1, 0, more))
        }
      }
      assert.equal(received, total)
    })

    test('is refused with the status that says why, at the end of the stream', async () => {
      await using peer = await open()
      const cases = [
        [connectBlock('10.77.9.9:8080'), 400],
        [connectBlock('no-port'), 400],
        [connectBlock('/', 'GET'), 400],
        [connectBlock(`${server.ip}:8099`), 503],
        [connectBlock(`${server.ip}:15006`), 503],
        [connectBlock('unknown.default.svc.cluster.local:80'), 503],
      ] as const
      for (const [index, [block, expected]] of cases.entries()) {
        const stream = index * 2 + 1
        peer.send(headers(stream, block))
        assert.deepEqual(await peer.answer(stream), { status: expected, ended: true })
      }
    })

    test('resets a stream, and the application sees a reset; other streams go on', async () => {
      const sockets: net.Socket[] = []
      const listener = await lab.listen('server', 8081, (socket) => {
        sockets.push(socket)
        socket.on('error', () => undefined)
        socket.resume()
      })
      await using peer = await open()
      peer.send(headers(1, connectBlock(`${server.ip}:8081`)), headers(3, connectBlock(application)))
      assert.equal((await peer.answer(1)).status, 200)
      assert.equal((await peer.answer(3)).status, 200)
      await eventually(() => sockets.length === 1, 'the application has the connection')
      const failed = sockets[0] && once(sockets[0], 'error')
      peer.send(encodeFrame(frameTypes.resetStream, 1, 0, uint32(8)))
      assert.equal((await failed)?.[0]?.code, 'ECONNRESET')
      peer.send(encodeFrame(frameTypes.data, 3, 0, Buffer.from('still')))
      assert.equal(await peer.read(3, 5), 'still')
      listener.close()
    })

    test('that breaks the protocol is told so and cut off, and the next one is served', async () => {
      for (const broken of [
        encodeFrame(frameTypes.data, 1, 0, Buffer.from('data of no stream')),
        encodeFrame(frameTypes.windowUpdate, 0, 0, uint32(0)),
        encodeFrame(frameTypes.settings, 0, 0, Buffer.alloc(5)),
        encodeFrame(frameTypes.headers, 1, flags.endHeaders, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
        encodeFrame(frameTypes.ping, 0, 0, Buffer.alloc(3)),
        Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
      ]) {
        await using peer = await open()
        peer.send(broken)
        await peer.next(({ type }) => type === frameTypes.goAway, `GOAWAY for ${broken.toString('hex').slice(0, 40)}`)
        await eventually(() => peer.ended, 'the end of the connection')
      }
      const told = /\twarn\tproxy\ttunnel connection broken by its peer\tsrc\.addr=10\.77\.2\.3:\d+ error="?(.*?)"?$/gm
      const reasons = () => [...proxy.log().matchAll(told)].map(([, reason]) => reason)
      await eventually(() => reasons().length === 6, 'a line for each')
      assert.ok(reasons().includes('WINDOW_UPDATE of nothing'), `${reasons()}`)
      await using peer = await open()
      peer.send(headers(1, connectBlock(application)))
      assert.equal((await peer.answer(1)).status, 200)
    })
  })

  suite('openssl s_client', { skip: existsSync('/usr/bin/openssl') ? false : 'no openssl' }, () => {
    const sClient = async (...args: string[]): Promise<string> => {
      const command = `timeout 3 openssl s_client -connect ${hbone.ip}:${hbone.port} -alpn h2 ${args.join(' ')} </dev/null 2>&1; true`
      return lab.run('stranger', 'sh', '-c', command)
    }
    const withCertificate = async (
      issued: { readonly chain: string; readonly privateKey: string },
      ...more: string[]
    ): Promise<string> => {
      const base = join(lab.directory, `openssl-${Math.random()}`)
      writeFileSync(`${base}.crt`, issued.chain)
      writeFileSync(`${base}.key`, issued.privateKey)
      const roots = join(lab.directory, 'root-cert.pem')
      // Kept open for a moment: in TLS 1.3 a refused client hears of it after its own handshake is done.
      const args = ['-cert', `${base}.crt`, '-key', `${base}.key`, '-CAfile', roots, '-verify_return_error', ...more]
      const command = `(sleep 0.5) | timeout 3 openssl s_client -connect ${hbone.ip}:${hbone.port} -alpn h2 ${args.join(' ')} 2>&1; true`
      return lab.run('stranger', 'sh', '-c', command)
    }

    test('gets TLS 1.3, h2 and a certificate with the identity', async () => {
      const text = await withCertificate(await lab.controlPlane.issue(identityOf('stranger')))
      assert.match(text, /TLSv1\.3, Cipher is TLS_AES_(256_GCM_SHA384|128_GCM_SHA256)/)
      assert.match(text, /ALPN protocol: h2/)
      assert.match(text, /Verify return code: 0 \(ok\)|Verification: OK/)
      assert.doesNotMatch(text, /alert/)
      assert.doesNotMatch(text, /New, .*Session-ID: [0-9A-F]{64}/)
    })

    test('with TLS 1.2 is refused', async () => {
      assert.match(await sClient('-tls1_2'), /alert protocol version|unsupported protocol/)
    })

    test('without a certificate is refused', async () => {
      const command = `(sleep 0.5) | timeout 3 openssl s_client -connect ${hbone.ip}:${hbone.port} -alpn h2 2>&1; true`
      assert.match(await lab.run('stranger', 'sh', '-c', command), /alert certificate required/)
    })

    test('with an expired certificate, or one not valid yet, is refused', async () => {
      const hour = 3_600_000
      for (const [from, to] of [
        [-3 * hour, -hour],
        [hour, 3 * hour],
      ] as const) {
        const dates = { notBefore: new Date(Date.now() + from), notAfter: new Date(Date.now() + to) }
        const refused = proxy.log().split('tls handshake error').length
        await withCertificate(await lab.controlPlane.issueDated(identityOf('stranger'), dates))
        await eventually(() => proxy.log().split('tls handshake error').length > refused, 'the refusal in the log')
      }
    })

    test('of another trust domain is refused', async () => {
      await withCertificate(await lab.controlPlane.issue(identityOf('stranger', 'other.domain')))
      await proxy.logged(
        /tls handshake error: .*did not present the expected trustdomain \(cluster\.local\), got spiffe:\/\/other\.domain\//,
      )
    })

    test('of another authority is refused', async () => {
      const refused = proxy.log().split('tls handshake error').length
      const { createTestPki } = await import('../support/test-pki.ts')
      const other = await createTestPki()
      const text = await withCertificate(await other.issue(identityOf('stranger')))
      assert.match(text, /alert|unexpected eof/)
      await eventually(() => proxy.log().split('tls handshake error').length > refused, 'the refusal in the log')
    })

    test('that speaks no h2 is refused', async () => {
      const command = `(sleep 0.3) | timeout 3 openssl s_client -connect ${hbone.ip}:${hbone.port} -alpn http/1.1 2>&1; true`
      assert.match(await lab.run('stranger', 'sh', '-c', command), /alert no application protocol/)
    })
  })

  test('nghttp gets its answer', { skip: existsSync('/usr/bin/nghttp') ? false : 'no nghttp' }, async () => {
    const { chain, privateKey } = await lab.controlPlane.issue(identityOf('stranger'))
    const base = join(lab.directory, 'nghttp')
    writeFileSync(`${base}.crt`, chain)
    writeFileSync(`${base}.key`, privateKey)
    const url = `https://${hbone.ip}:${hbone.port}/`
    const text = await lab.run('stranger', 'nghttp', '-v', '-y', '--cert', `${base}.crt`, '--key', `${base}.key`, url)
    assert.match(text, /The negotiated protocol: h2/)
    for (const setting of [
      'SETTINGS_MAX_CONCURRENT_STREAMS(0x03):200',
      'SETTINGS_INITIAL_WINDOW_SIZE(0x04):4194304',
      'SETTINGS_MAX_FRAME_SIZE(0x05):1048576',
      'SETTINGS_MAX_HEADER_LIST_SIZE(0x06):65536',
    ]) {
      assert.ok(text.includes(`[${setting}]`), setting)
    }
    // A GET is no tunnel.
    assert.match(text, /:status: 400/)
    await proxy.logged(/expected method CONNECT, got GET/)
  })

  test('Envoy as client tunnels to the node proxy', { skip: envoyMissing }, async () => {
    const files = await envoyFiles(lab, identityOf('gateway'))
    await using _envoy = await startEnvoy(
      lab,
      'gateway',
      tunnelClient({ listenPort: 9001, tunnelTo: hbone, authority: application, files, peer: identityOf('server') }),
    )
    const to = { ip: '127.0.0.1', port: 9001 }
    assert.equal(await exchange(lab, 'gateway', to, 'through Envoy'), 'through Envoy')
    assert.equal(seen.at(-1), gateway.ip)
    const many = await Promise.all(Array.from({ length: 50 }, (_, index) => exchange(lab, 'gateway', to, `x${index}`)))
    assert.deepEqual(
      many,
      Array.from({ length: 50 }, (_, index) => `x${index}`),
    )
    const large = 'z'.repeat(8 * 1024 * 1024)
    assert.equal((await exchange(lab, 'gateway', to, large)).length, large.length)
    await proxy.logged(
      /connection complete.*src\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/gateway".*direction="inbound"/,
    )
  })

  test('the node proxy tunnels to Envoy', { skip: envoyMissing }, async () => {
    const files = await envoyFiles(lab, identityOf('gateway'))
    announcePod(lab, { ...gateway, node: 'elsewhere' })
    await using envoy = await startEnvoy(
      lab,
      'gateway',
      tunnelServer({ listenPort: 15008, applicationPort: 8080, files, peer: identityOf('client') }),
    )
    await lab.listen('gateway', 8080, answerBack)
    const to = { ip: gateway.ip, port: 8080 }
    await eventually(
      async () => (await exchange(lab, 'client', to, 'to Envoy').catch(() => '')) === 'to Envoy',
      'a call',
    )
    await proxy.logged(
      /connection complete.*dst\.addr=10\.77\.2\.4:15008 dst\.hbone_addr=10\.77\.2\.4:8080.*dst\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/gateway"/,
    )
    const many = await Promise.all(Array.from({ length: 50 }, (_, index) => exchange(lab, 'client', to, `y${index}`)))
    assert.deepEqual(
      many,
      Array.from({ length: 50 }, (_, index) => `y${index}`),
    )
    const large = 'z'.repeat(8 * 1024 * 1024)
    assert.equal((await exchange(lab, 'client', to, large)).length, large.length)
    assert.doesNotMatch(envoy.log(), /protocol error/i)
  })
})
