// What goes wrong around a node proxy: the control plane, the other proxy, the peers, the machine.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, suite, test } from 'node:test'
import { security } from '../../src/proto/index.ts'
import { createEchoLab, echoTo, echoWorks, outsider, server } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { exchange } from '../support/mesh-lab-content.ts'
import { createTestPki } from '../support/test-pki.ts'

const buildLab = (): Promise<MeshLab> => createEchoLab({ pods: [outsider], nodes: ['spare'] })

const readiness = (lab: MeshLab, node: string) =>
  lab.run(node, 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready').catch(() => '')

/** Until a count moves no more. */
async function untilStill(count: () => number): Promise<void> {
  let seen = -1
  await eventually(async () => {
    const still = seen === count()
    seen = count()
    await new Promise((resolve) => setTimeout(resolve, 300))
    return still
  }, 'a standstill')
}

suite('failures around a node proxy', { skip: canRunLab, timeout: 180_000 }, () => {
  suite('of the control plane', () => {
    let lab: MeshLab
    before(async () => {
      lab = await buildLab()
    })
    after(() => lab?.[Symbol.asyncDispose]())
    const running: LabProxy[] = []
    const start = async (node: string, env: Record<string, string> = {}) => {
      const proxy = await lab.startProxy(node, env)
      running.push(proxy)
      return proxy
    }
    afterEach(async () => {
      lab.controlPlane.caBehaviour = 'sign'
      await Promise.all(running.splice(0).map((proxy) => proxy.stop('SIGKILL')))
    })
    const works = () => echoWorks(lab)

    for (const [behaviour, reason] of [
      ['garbage', /identity error: invalid (certificate|root)/],
      [
        'wrong-identity',
        /identity error: did not find expected SAN: spiffe:\/\/cluster\.local\/ns\/default\/sa\/client/,
      ],
      ['wrong-key', /identity error: the certificate for \S+ is not for the key that was sent/],
      ['expired', /identity error: the certificate for \S+ has expired already/],
    ] as const) {
      test(`a CA that answers with ${behaviour} gives no connections, and nothing goes out in plain text; a better answer later does`, async () => {
        lab.controlPlane.caBehaviour = behaviour
        const [proxy] = await Promise.all([start('n1'), start('n2')])
        assert.equal(await works(), false)
        assert.match(await proxy.logged(/connection complete.*error="identity error/), reason)
        const dump = JSON.parse(await lab.run('n1', 'curl', '-sS', 'http://127.0.0.1:15000/config_dump'))
        assert.match(dump.certificates[0].state, /^Unavailable: /)
        lab.controlPlane.caBehaviour = 'sign'
        await eventually(works, 'a call')
      })
    }

    test('a CA that hangs holds connections back; when its connection breaks, the next request is answered', async () => {
      lab.controlPlane.caBehaviour = 'hang'
      await Promise.all([start('n1'), start('n2')])
      const held = await lab.connect('client', echoTo)
      ignoreErrors(held)
      held.write('held')
      assert.equal(
        await Promise.race([once(held, 'data'), new Promise((done) => setTimeout(done, 500, 'nothing'))]),
        'nothing',
      )
      lab.controlPlane.caBehaviour = 'sign'
      lab.controlPlane.cutConnections()
      await eventually(works, 'a call')
      held.destroy()
    })

    test('a control plane that answers under a name it has no certificate for gets no token and is never believed', async () => {
      const relayed = { seen: 0 }
      const relay = await lab.listen('outsider', 15012, (socket) => {
        relayed.seen += 1
        ignoreErrors(socket)
        const { hostname, port } = new URL(lab.controlPlane.address)
        void lab.connect('outsider', { ip: hostname, port: Number(port) }).then((onward) => {
          ignoreErrors(onward)
          socket.pipe(onward).pipe(socket)
        })
      })
      const elsewhere = `https://${outsider.ip}:15012`
      const misled = lab.launch('spare', {
        NODE_NAME: 'spare',
        XDS_ADDRESS: elsewhere,
        INPOD_UDS: join(lab.directory, 'x'),
      })
      await misled.logged(/the stream to the control plane ended.*(altnames|ERR_TLS_CERT_ALTNAME_INVALID|IP: )/)
      assert.match(await readiness(lab, 'spare'), /^not ready/)
      await misled.stop()
      const [proxy] = await Promise.all([start('n1', { CA_ADDRESS: elsewhere }), start('n2')])
      assert.equal(await works(), false)
      assert.match(await proxy.logged(/connection complete.*error="identity error/), /altnames|IP: /)
      assert.ok(relayed.seen >= 2)
      relay.close()
    })

    test('a control plane that takes connections and says nothing is given up and tried again; the process can be ended', async () => {
      let taken = 0
      const silent = await lab.listen('outsider', 9998, (socket) => {
        taken += 1
        ignoreErrors(socket)
        socket.resume()
      })
      const waiting = lab.launch('spare', {
        NODE_NAME: 'spare',
        XDS_ADDRESS: `https://${outsider.ip}:9998`,
        INPOD_UDS: join(lab.directory, 'x'),
      })
      await waiting.logged(/the stream to the control plane ended.*no connection within/)
      await eventually(() => taken > 1, 'another attempt')
      assert.equal(await waiting.stop('SIGTERM'), 0)
      silent.close()
    })

    test('without its control plane a proxy goes on as it is, and takes up what it missed', async () => {
      const [, serverProxy] = await Promise.all([start('n1'), start('n2')])
      const socket = await lab.connect('client', echoTo)
      ignoreErrors(socket)
      assert.equal(await say(socket, 'one'), 'one')
      lab.controlPlane.cutConnections()
      assert.equal(await say(socket, 'two'), 'two')
      assert.equal(await works(), true)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      lab.controlPlane.setPolicy({
        name: 'none',
        namespace: 'default',
        scope: security.Scope.NAMESPACE,
        action: security.Action.ALLOW,
        groups: [],
      })
      await closed
      await serverProxy.logged(
        /connection closed due to policy change.*reason="allow policies exist, but none allowed"/,
      )
      assert.equal(await works(), false)
      lab.controlPlane.removePolicy('default/none')
      await eventually(works, 'a call')
    })

    test('a control plane of another root, or one that talks nonsense, is never believed', async () => {
      const roots = join(lab.directory, 'other-root.pem')
      writeFileSync(roots, (await createTestPki()).roots)
      const misled = lab.launch('spare', {
        NODE_NAME: 'spare',
        XDS_ROOT_CA: roots,
        INPOD_UDS: join(lab.directory, 'x'),
      })
      await misled.logged(/the stream to the control plane ended.*(signature|certificate)/)
      assert.equal(await readiness(lab, 'spare'), 'not ready, pending: state manager, workload proxy manager\n')
      await misled.stop('SIGTERM')
      const nonsense = await lab.listen('outsider', 9999, (socket) => {
        ignoreErrors(socket)
        socket.write(Buffer.alloc(4096, 0xee))
      })
      const confused = lab.launch('spare', {
        NODE_NAME: 'spare',
        XDS_ADDRESS: `https://${outsider.ip}:9999`,
        INPOD_UDS: join(lab.directory, 'x'),
      })
      await confused.logged(/the stream to the control plane ended/)
      assert.match(await readiness(lab, 'spare'), /^not ready/)
      const startedAt = performance.now()
      assert.equal(await confused.stop('SIGTERM'), 0)
      assert.ok(performance.now() - startedAt < 8000, 'a start that is not finished ends promptly')
      nonsense.close()
    })
  })

  suite('of peers and of the machine', () => {
    let lab: MeshLab
    let clientProxy: LabProxy
    let serverProxy: LabProxy
    before(async () => {
      lab = await buildLab()
      ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1'), lab.startProxy('n2')])
    })
    after(() => lab?.[Symbol.asyncDispose]())

    test('a client that reads nothing costs bounded memory and holds nobody else up', async () => {
      const size = 256 * 1024 * 1024
      let written = 0
      const listener = await lab.listen('server', 8081, (socket) => {
        ignoreErrors(socket)
        const chunk = Buffer.alloc(1024 * 1024)
        const write = () => {
          while (written < size) {
            written += chunk.length
            if (!socket.write(chunk)) return
          }
          socket.end()
        }
        socket.on('drain', write)
        write()
      })
      assert.equal(await exchange(lab, 'client', echoTo, 'before'), 'before')
      const idle = [clientProxy.rss(), serverProxy.rss()]
      const slow = await lab.connect('client', { ip: server.ip, port: 8081 })
      ignoreErrors(slow)
      // Until nothing moves any more: every buffer on the way is full.
      await untilStill(() => written)
      assert.ok(written < size, `${written}`)
      for (let count = 0; count < 20; count += 1)
        assert.equal(await exchange(lab, 'client', echoTo, 'others'), 'others')
      const grown = [clientProxy.rss() - (idle[0] ?? 0), serverProxy.rss() - (idle[1] ?? 0)]
      assert.ok(Math.max(...grown) < 96 * 1024 * 1024, `${grown}`)
      let received = 0
      for await (const chunk of slow) received += chunk.length
      assert.equal(received, size)
      listener.close()
    })

    test('clients that read nothing do not hold up other connections of their pod to the same place', {
      timeout: 60_000,
    }, async () => {
      let writing = 0
      const listener = await lab.listen('server', 8082, (socket) => {
        ignoreErrors(socket)
        const chunk = Buffer.alloc(1024 * 1024)
        const write = () => {
          do writing += 1
          while (socket.write(chunk))
        }
        socket.on('drain', write)
        write()
      })
      const slow = await Promise.all(
        Array.from({ length: 30 }, () => lab.connect('client', { ip: server.ip, port: 8082 })),
      )
      for (const socket of slow) ignoreErrors(socket)
      await untilStill(() => writing)
      for (let count = 0; count < 40; count += 1)
        assert.equal(await exchange(lab, 'client', echoTo, 'others'), 'others')
      for (const socket of slow) socket.destroy()
      listener.close()
    })

    test('peers that say nothing, or stop in the middle of a handshake, do not keep others out', async () => {
      const silent = await Promise.all(
        Array.from({ length: 200 }, () => lab.connect('outsider', { ip: server.ip, port: 15008 })),
      )
      for (const [index, socket] of silent.entries()) {
        ignoreErrors(socket)
        if (index % 2 === 0) socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0]))
      }
      assert.equal(await exchange(lab, 'client', echoTo, 'served'), 'served')
      await Promise.all(
        silent.map(async (socket) => {
          const over = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
          socket.resume()
          await over
          socket.destroy()
        }),
      )
    })

    test('out of descriptors: connections are refused for a while and taken again later', async () => {
      const limit = (soft: number) =>
        execFileSync('prlimit', ['--pid', String(clientProxy.pid), `--nofile=${soft}:20000`])
      limit(250)
      const sockets = await Promise.all(
        Array.from({ length: 400 }, () => lab.connect('client', echoTo).catch(() => undefined)),
      )
      for (const socket of sockets) {
        if (socket === undefined) continue
        ignoreErrors(socket)
        socket.write('x')
      }
      await new Promise((resolve) => setTimeout(resolve, 1000))
      for (const socket of sockets) socket?.destroy()
      await eventually(() => echoWorks(lab), 'a call')
      limit(20_000)
      assert.ok(clientProxy.log().length < 4 * 1024 * 1024, 'the log is not flooded')
    })

    test('a reader of the log that stops holds nothing up', async () => {
      const { stdout } = clientProxy.process
      assert.ok(stdout)
      stdout.pause()
      for (let count = 0; count < 300; count += 1) assert.equal(await exchange(lab, 'client', echoTo, 'on'), 'on')
      stdout.resume()
      await clientProxy.logged(/connection complete/)
    })

    test('a full disk under the log costs lines, not connections; how many is told', async () => {
      await clientProxy.stop('SIGTERM')
      clientProxy = await lab.startProxy('n1', {}, { stdout: '/dev/full' })
      for (let count = 0; count < 20; count += 1) assert.equal(await exchange(lab, 'client', echoTo, 'on'), 'on')
      const metrics = () => lab.run('n1', 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')
      await eventually(async () => {
        const dropped = Number(/^lateen_log_lines_dropped_total (\d+)$/m.exec(await metrics())?.[1])
        return dropped >= 20
      }, 'lost lines counted')
      await clientProxy.stop('SIGTERM')
      clientProxy = await lab.startProxy('n1')
    })

    test('the other proxy is killed: connections end, and its successor is used at once', async () => {
      const socket = await lab.connect('client', echoTo)
      ignoreErrors(socket)
      assert.equal(await say(socket, 'one'), 'one')
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.resume()
      await serverProxy.stop('SIGKILL')
      await closed
      assert.equal(await exchange(lab, 'client', echoTo, 'nobody').catch(() => ''), '')
      serverProxy = await lab.startProxy('n2')
      await eventually(() => echoWorks(lab), 'a call')
      await clientProxy.logged(/connection complete.*direction="outbound".*error=/)
    })
  })
})
