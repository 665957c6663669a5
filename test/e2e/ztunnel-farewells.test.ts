// What the peers of tunnels are told, frame by frame, when a pod goes, a certificate is revoked, a peer is dead or the process ends.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import tls from 'node:tls'
import { eventually } from '../support/eventually.ts'
import { answerBack, ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type LabPod, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod } from '../support/mesh-lab-content.ts'
import { encodeFrame, flags, frameTypes, type RawPeer, rawPeer } from '../support/raw-http2.ts'
import { openRawTunnels, type RawTunnelClient, type RawTunnelOptions } from '../support/raw-tunnel-client.ts'

const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
const server = { name: 'server', ip: '10.77.2.2', node: 'n2' }
const doomed = { name: 'doomed', ip: '10.77.2.4', node: 'n2' }
const adrift = { name: 'adrift', ip: '10.77.2.5', node: 'n2' }
const quiet = { name: 'quiet', ip: '10.77.2.3', node: 'n3' }
/** Of the mesh, without a node proxy. */
const stranger = { name: 'stranger', ip: '10.77.2.9' }
const identityOf = ({ name }: LabPod) => `spiffe://cluster.local/ns/default/sa/${name}`

const noError = 0
const cancel = 8

suite('farewells of a node proxy', { skip: canRunLab, timeout: 180_000 }, () => {
  let lab: MeshLab
  let serverProxy: LabProxy
  let silent: RawTunnelClient
  const revocations = () => join(lab.directory, 'n2.crl')
  const openTo = (to: LabPod, more: Partial<RawTunnelOptions> = {}) =>
    openRawTunnels(lab, { from: 'stranger', to: to.ip, as: identityOf(stranger), expects: identityOf(to), ...more })
  const remove = async ({ name }: LabPod) => assert.equal(await lab.agentOf('n2').remove(`uid-${name}`), '')
  const add = async ({ name }: LabPod) => {
    const pod = { name, namespace: 'default', serviceAccount: name }
    assert.equal(await lab.agentOf('n2').add({ uid: `uid-${name}`, namespacePath: lab.namespacePath(name), pod }), '')
  }
  const startServerProxy = async (env: Readonly<Record<string, string>> = {}) => {
    serverProxy = await lab.startProxy('n2', { CRL_PATH: revocations(), ZTUNNEL_WORKER_THREADS: '2', ...env })
  }

  before(async () => {
    lab = await createMeshLab({ pods: [client, server, doomed, adrift, quiet, stranger], nodes: ['n1', 'n2', 'n3'] })
    for (const pod of [client, server, doomed, adrift, quiet, { ...stranger, node: 'elsewhere' }]) announcePod(lab, pod)
    for (const { name } of [client, server]) await lab.listen(name, 8080, answerBack)
    writeFileSync(revocations(), '')
    await lab.startProxy('n1')
    await startServerProxy()
    await lab.startProxy('n3')
    silent = await openTo(quiet)
  })
  after(async () => {
    await silent?.[Symbol.asyncDispose]()
    await lab?.[Symbol.asyncDispose]()
  })

  const echoes = async (peer: RawTunnelClient, stream: number): Promise<void> => {
    assert.deepEqual(await peer.connect(stream, `${server.ip}:8080`), { status: 200, ended: false })
    peer.send(encodeFrame(frameTypes.data, stream, 0, Buffer.from('hello')))
    assert.equal(await peer.read(stream, 5), 'hello')
  }
  const goAway = async (peer: RawPeer) => {
    const { payload } = await peer.next(({ type }) => type === frameTypes.goAway, 'GOAWAY')
    return { last: payload.readUInt32BE(0), code: payload.readUInt32BE(4) }
  }
  const isReset = async (peer: RawPeer, id: number): Promise<void> => {
    const { payload } = await peer.next(
      ({ type, stream }) => type === frameTypes.resetStream && stream === id,
      `the reset of stream ${id}`,
    )
    assert.equal(payload.readUInt32BE(0), cancel)
  }
  const hearsTheEnd = async (peer: RawPeer, streams: readonly number[]): Promise<void> => {
    for (const id of streams) await isReset(peer, id)
    assert.deepEqual(await goAway(peer), { last: Math.max(0, ...streams), code: noError })
    await eventually(() => peer.ended, 'the end of the connection')
  }

  test('a pod that goes: streams are reset, then GOAWAY, then the end', async () => {
    await using busy = await openTo(server)
    await echoes(busy, 1)
    await echoes(busy, 3)
    await using idle = await openTo(server)
    await remove(server)
    await hearsTheEnd(busy, [1, 3])
    await hearsTheEnd(idle, [])
    await add(server)
  })

  test('a pod that goes while a peer reads nothing: the agent has its answer, and the connection is closed soon', async () => {
    const listener = await lab.listen('server', 8081, (socket) => {
      ignoreErrors(socket)
      socket.write(Buffer.alloc(64 * 1024 * 1024))
    })
    await using peer = await openTo(server)
    const mostWindow = Buffer.from([0x3f, 0, 0, 0])
    peer.send(encodeFrame(frameTypes.windowUpdate, 0, 0, mostWindow))
    assert.equal((await peer.connect(1, `${server.ip}:8081`)).status, 200)
    peer.stream.pause()
    peer.send(encodeFrame(frameTypes.windowUpdate, 1, 0, mostWindow))
    const unsent = () => {
      const [line = ''] = lab.exec('server', 'ss', '-Htn', 'dst', stranger.ip, 'sport', '=', '15008').split('\n')
      const [, state, , bytes] = /^(\S+)\s+(\d+)\s+(\d+)/.exec(line) ?? []
      return state === 'ESTAB' ? Number(bytes) : undefined
    }
    let last: number | undefined
    const isStuck = () => {
      const before = last
      last = unsent()
      return last !== undefined && last > 0 && last === before
    }
    await eventually(isStuck, 'a connection that nothing moves on')
    await remove(server)
    await eventually(() => unsent() === undefined, 'the end of the connection')
    listener.close()
    await add(server)
  })

  for (const [pod, linked] of [
    [doomed, true],
    [adrift, false],
  ] as const) {
    const title = linked ? 'peers are told all the same, and' : 'and its link with it:'
    test(`a namespace that is gone before its pod: ${title} nothing stays open`, async () => {
      await remove(pod)
      const without = descriptors(serverProxy)
      await add(pod)
      const sockets: Socket[] = []
      const listener = await lab.listen(pod.name, 8080, (socket) => {
        sockets.push(socket)
        answerBack(socket)
      })
      await using peer = await openTo(pod)
      assert.equal((await peer.connect(1, `${pod.ip}:8080`)).status, 200)
      const incoming = await lab.connect('client', { ip: pod.ip, port: 8080 })
      const outgoing = await lab.connect(pod.name, { ip: client.ip, port: 8080 })
      for (const socket of [incoming, outgoing]) {
        ignoreErrors(socket)
        assert.equal(await say(socket, 'hello'), 'hello')
      }
      const logged = serverProxy.log().length
      const since = () => serverProxy.log().slice(logged)

      if (!linked) lab.exec(pod.name, 'ip', 'link', 'del', 'eth0')
      execFileSync('ip', ['netns', 'del', lab.namespaceName(pod.name)])
      // For the lab to remove.
      execFileSync('ip', ['netns', 'add', lab.namespaceName(pod.name)])
      lab.exec(pod.name, 'ip', 'link', 'set', 'lo', 'up')
      await remove(pod)
      if (linked) {
        await hearsTheEnd(peer, [1])
        await eventually(() => incoming.closed, 'the end of the connection through both proxies')
      }
      const lines = () => since().split('\n').slice(0, -1)
      await eventually(() => lines().length === 4, since)
      const ends = (direction: string) =>
        lines().filter((line) => line.includes(`direction="${direction}"`) && line.includes('due to connection drain"'))
      assert.deepEqual([ends('inbound').length, ends('outbound').length], [2, 1], since())
      assert.equal(lines().filter((line) => /pod proxy stopped/.test(line)).length, 1, since())
      await eventually(() => descriptors(serverProxy) === without, 'all descriptors of the pod closed')
      assert.equal(lines().length, 4, since())
      // Without a link the application hears nothing.
      for (const socket of [incoming, outgoing, ...sockets]) socket.destroy()
      listener.close()
    })
  }

  test('a client that goes: its streams are reset, then GOAWAY, then the end', async () => {
    const { chain: cert, privateKey: key } = await lab.controlPlane.issue(identityOf(stranger))
    const served = Promise.withResolvers<RawPeer>()
    const listener = await lab.listen('stranger', 15008, (socket) => {
      ignoreErrors(socket)
      const secured = {
        isServer: true,
        cert,
        key,
        ca: lab.controlPlane.roots,
        requestCert: true,
        ALPNProtocols: ['h2'],
      }
      served.resolve(rawPeer(new tls.TLSSocket(socket, secured), { expectPreface: true }))
    })
    const socket = await lab.connect('server', { ip: stranger.ip, port: 8080 })
    ignoreErrors(socket)
    const peer = await served.promise
    peer.send(encodeFrame(frameTypes.settings, 0))
    await peer.next(({ type, stream }) => type === frameTypes.headers && stream === 1, 'a CONNECT')
    // :status 200 of the static table.
    peer.send(encodeFrame(frameTypes.headers, 1, flags.endHeaders, Buffer.from([0x88])))
    peer.send(encodeFrame(frameTypes.data, 1, 0, Buffer.from('hello')))
    const heard = once(socket, 'data')
    socket.resume()
    assert.equal(String((await heard)[0]), 'hello')
    await remove(server)
    await isReset(peer, 1)
    assert.deepEqual(await goAway(peer), { last: 0, code: noError })
    await eventually(() => peer.ended, 'the end of the connection')
    for (const one of [peer.stream, socket]) one.destroy()
    listener.close()
    await add(server)
  })

  test('a peer whose certificate is revoked: its streams are reset, then GOAWAY; others go on', async () => {
    const credentials = await lab.controlPlane.issue(identityOf(stranger))
    await using revoked = await openTo(server, { credentials })
    await echoes(revoked, 1)
    await using other = await openTo(server)
    await echoes(other, 1)
    const { serialNumber } = new X509Certificate(credentials.chain)
    writeFileSync(revocations(), await lab.controlPlane.revocationList([serialNumber]))
    await hearsTheEnd(revoked, [1])
    other.send(encodeFrame(frameTypes.data, 1, 0, Buffer.from('still')))
    assert.equal(await other.read(1, 5), 'still')
    await serverProxy.logged(/connection complete.*error="connection closed: peer certificate revoked by CRL"/)
  })

  test('a peer whose authority is revoked, which the proxy sees in the handshake alone: the same, and it gets in no more', async () => {
    const [bad, good] = await Promise.all([lab.controlPlane.intermediate(), lab.controlPlane.intermediate()])
    const credentials = await bad.issue(identityOf(stranger))
    await using revoked = await openTo(server, { credentials })
    await echoes(revoked, 1)
    await using other = await openTo(server, { credentials: await good.issue(identityOf(stranger)) })
    await echoes(other, 1)
    writeFileSync(revocations(), await lab.controlPlane.revocationList([bad.serial]))
    await hearsTheEnd(revoked, [1])
    other.send(encodeFrame(frameTypes.data, 1, 0, Buffer.from('still')))
    assert.equal(await other.read(1, 5), 'still')
    // The list is read already: the door knows it.
    await assert.rejects(openTo(server, { credentials: await bad.issue(identityOf(stranger)) }))
    await serverProxy.logged(
      /connection failed.*error="tls handshake error: connection closed: peer certificate revoked by CRL"/,
    )
  })

  test('SIGTERM: a first GOAWAY, the last one once its ping is answered; streams in progress end by themselves', async () => {
    await using peer = await openTo(server)
    await echoes(peer, 1)
    const ended = serverProxy.stop()
    assert.deepEqual(await goAway(peer), { last: 2 ** 31 - 1, code: noError })
    const ping = await peer.next(({ type, flags: has }) => type === frameTypes.ping && has === 0, 'a ping')
    // Opened before the goodbye was seen.
    await echoes(peer, 3)
    peer.send(encodeFrame(frameTypes.ping, 0, flags.ack, ping.payload))
    assert.deepEqual(await goAway(peer), { last: 3, code: noError })
    for (const stream of [1, 3]) {
      peer.send(encodeFrame(frameTypes.data, stream, flags.endStream, Buffer.from('bye')))
      assert.equal(await peer.read(stream, 3), 'bye')
    }
    assert.equal(await ended, 0)
    assert.equal(peer.ended, true)
    assert.equal(
      peer.pending.some(({ type }) => type === frameTypes.resetStream),
      false,
    )
  })

  test('SIGTERM: what has not ended at the deadline is reset and told goodbye', async () => {
    await startServerProxy({ TERMINATION_GRACE_PERIOD_SECONDS: '1' })
    await using peer = await openTo(server)
    await echoes(peer, 1)
    const ended = serverProxy.stop()
    assert.deepEqual(await goAway(peer), { last: 2 ** 31 - 1, code: noError })
    await hearsTheEnd(peer, [1])
    assert.equal(await ended, 0)
  })

  test('a peer that answers no ping is told goodbye', async () => {
    const { payload } = await silent.next(({ type, flags: has }) => type === frameTypes.ping && has === 0, 'a ping')
    assert.equal(payload.length, 8)
    assert.deepEqual(await goAway(silent), { last: 0, code: noError })
    await eventually(() => silent.ended, 'the end of the connection')
  })
})

const descriptors = ({ pid }: LabProxy): number => readdirSync(`/proc/${pid}/fd`).length
