import assert from 'node:assert/strict'
import type net from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { client, createEchoLab, echo, echoTo, echoWorks, outsider, server } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { answerBack, ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, ipv6Of, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, announceService, exchange, hostnameOf } from '../support/mesh-lab-content.ts'

const metricsOf = (lab: MeshLab, node: string): Promise<string> =>
  lab.run(node, 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')

suite('the node proxy in its modes', { skip: canRunLab, timeout: 120_000 }, () => {
  suite('with SOCKS5 and IPv6', () => {
    let lab: MeshLab
    let clientProxy: LabProxy
    let serverProxy: LabProxy
    const peers: (string | undefined)[] = []

    before(async () => {
      const onSocket = (socket: net.Socket): void => {
        peers.push(socket.remoteAddress)
        answerBack(socket)
      }
      lab = await createEchoLab({ pods: [outsider], onSocket })
      await lab.listen('server', 8080, onSocket, ipv6Of(server.ip))
      const env = {
        UNSTABLE_ENABLE_SOCKS5: 'true',
        AUTHZ_POLICY_INFO_LOGGING: 'true',
        RUST_LOG: 'info,proxy=debug',
      }
      ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
    })
    after(() => lab?.[Symbol.asyncDispose]())

    const curl = (...args: string[]) => lab.run('client', 'curl', '-sS', '-m', '1', '--http0.9', ...args)

    test('a SOCKS5 client reaches a service by address, and by name through the DNS proxy', async () => {
      for (const [scheme, host] of [
        ['socks5', echoTo.ip],
        ['socks5h', hostnameOf('echo')],
      ] as const) {
        // The echo is no HTTP answer: curl reads it until its time is over.
        const answer = curl('-d', 'x', '--proxy', `${scheme}://127.0.0.1:15080`, `http://${host}/`)
        const text = await answer.catch((error: { stdout: string }) => error.stdout)
        assert.match(text, /^POST \/ HTTP\/1\.1/)
      }
      await eventually(() => clientProxy.log().split('connection complete').length === 3, 'two log lines')
      assert.match(clientProxy.log(), /connection complete.*dst\.service="echo\.default\.svc\.cluster\.local"/)
      assert.match(
        await serverProxy.logged(/\trbac\t/),
        /\trbac\tno allow policies, allow\t.*src\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/client"/,
      )
    })

    test('both ends log a connection under the same id, with the reason for its way', async () => {
      assert.equal(await exchange(lab, 'client', echoTo, 'traced'), 'traced')
      const routed = clientProxy.log().match(/\tproxy\trouted\tid=([0-9a-f]{32}) .*reason="\S+ by service .*: HBONE"/g)
      const id = /id=([0-9a-f]+)/.exec(routed?.at(-1) ?? '')?.[1]
      await serverProxy.logged(new RegExp(`\\trbac\\tno allow policies, allow\\tid=${id} `))
    })

    test('the ports of the proxy itself are refused as SOCKS5 targets', async () => {
      await assert.rejects(curl('--proxy', 'socks5://127.0.0.1:15080', 'http://127.0.0.1:15080/'))
      await clientProxy.logged(/connection failed.*attempted recursive call to ourselves/)
    })

    test('over IPv6 to a pod and to a service', async () => {
      for (const to of [
        { ip: ipv6Of(server.ip), port: 8080 },
        { ip: 'fd78::9', port: 80 },
      ]) {
        assert.equal(await exchange(lab, 'client', to, 'six'), 'six')
        assert.equal(peers.at(-1), ipv6Of(client.ip))
      }
      await eventually(
        () =>
          /connection complete.*src\.addr=\[fd77::2:1\]:\d+ .*dst\.addr=\[fd77::2:2\]:15008 dst\.hbone_addr=\[fd77::2:2\]:8080.*direction="outbound"/.test(
            clientProxy.log(),
          ),
        'a log line',
      )
      assert.equal(await exchange(lab, 'outsider', { ip: ipv6Of(server.ip), port: 8080 }, 'plain'), 'plain')
      assert.equal(peers.at(-1), ipv6Of(outsider.ip))
    })
  })

  test('addresses are asked for when they are needed, and known ones are not asked for again', async () => {
    await using lab = await createEchoLab({ pods: [outsider], onDemand: true })
    await lab.listen('outsider', 9000, answerBack)
    const env = { XDS_ON_DEMAND: 'true', ISTIO_META_DNS_CAPTURE: 'false' }
    const [clientProxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => exchange(lab, 'client', echoTo, `call ${index}`)),
    )
    assert.deepEqual(
      answers,
      Array.from({ length: 20 }, (_, index) => `call ${index}`),
    )
    assert.ok(lab.controlPlane.asked.has('/10.78.0.9'))
    await eventually(
      () => /connection complete.*dst\.identity="spiffe:.*\/sa\/server"/.test(clientProxy.log()),
      'HBONE',
    )
    assert.equal(await exchange(lab, 'client', { ip: outsider.ip, port: 9000 }, 'plain'), 'plain')
    assert.ok(lab.controlPlane.asked.has(`/${outsider.ip}`))
  })

  test('on demand: a service whose workloads are not told is refused, never reached in plain text, until they are', async () => {
    await using lab = await createMeshLab({ pods: [client, server], nodes: ['n1', 'n2'], onDemand: true })
    announcePod(lab, client)
    announceService(lab, echo)
    await lab.listen('server', 8080, answerBack)
    const env = { XDS_ON_DEMAND: 'true', ISTIO_META_DNS_CAPTURE: 'false' }
    const [clientProxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
    assert.equal(await exchange(lab, 'client', echoTo, 'too early').catch(() => ''), '')
    await clientProxy.logged(
      /connection failed.*dst\.addr=10\.78\.0\.9:80.*error="no healthy upstream: 10\.78\.0\.9:80"/,
    )
    announcePod(lab, server, [echo])
    await eventually(() => echoWorks(lab), 'a call')
    await clientProxy.logged(/connection complete.*dst\.identity="spiffe:.*\/sa\/server"/)
  })

  test('dedicated mode serves the one workload it is named for', async () => {
    await using lab = await createMeshLab({ pods: [client, server], nodes: ['n1', 'n2'] })
    const dedicated = { ...client, name: 'dedicated', ip: '10.77.2.1' }
    announcePod(lab, dedicated)
    announcePod(lab, server, [echo])
    announceService(lab, echo)
    await lab.listen('server', 8080, answerBack)
    await lab.startProxy('n2')
    // Of the process's own connections only those to other workloads carry the mark.
    lab.exec('client', 'nft', 'insert rule ip mesh nat_out ip daddr 10.77.0.1 accept')
    const proxy = lab.launch('client', {
      PROXY_MODE: 'dedicated',
      PROXY_WORKLOAD_INFO: 'default/dedicated/dedicated',
      PACKET_MARK: '1337',
    })
    const ready = async () => {
      const answer = lab.run('client', 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready')
      return (await answer.catch(() => '')) === 'ready\n'
    }
    await eventually(ready, 'readiness')
    assert.equal(await exchange(lab, 'client', echoTo, 'from a dedicated proxy'), 'from a dedicated proxy')
    const second = lab.launch('client', { PROXY_MODE: 'dedicated', PROXY_WORKLOAD_INFO: 'default/dedicated/dedicated' })
    assert.equal(await second.stopped(), 1)
    assert.match(second.log(), /failed to bind to address \[::\]:15008: .*EADDRINUSE/)
    await proxy.logged(
      /connection complete.*src\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/dedicated".*dst\.identity="spiffe:.*\/sa\/server"/,
    )
    assert.equal(await proxy.stop(), 0)
  })

  test('source addresses, shared ports, lifetimes and names of the control plane are as the settings say', async () => {
    const peers: (string | undefined)[] = []
    await using lab = await createEchoLab({
      onSocket(socket) {
        peers.push(socket.remoteAddress)
        answerBack(socket)
      },
    })
    // Under this address the control plane is reached, but its certificate does not carry it.
    const elsewhere = 'https://10.77.0.99:15012'
    lab.exec('n1', 'nft', 'add table ip alias')
    lab.exec('n1', 'nft', 'add chain ip alias out { type nat hook output priority -100; }')
    lab.exec('n1', 'nft', 'add rule ip alias out ip daddr 10.77.0.99 dnat to 10.77.0.1')
    const there = { XDS_ADDRESS: elsewhere, CA_ADDRESS: elsewhere }
    const stranger = lab.launch('n1', { NODE_NAME: 'n1', ...there })
    await stranger.logged(/10\.77\.0\.99 is not in the cert's list/)
    assert.equal(await stranger.stop(), 0)
    const settings = {
      n1: { ...there, ALT_XDS_HOSTNAME: '10.77.0.1', ALT_CA_HOSTNAME: '10.77.0.1', SECRET_TTL: '30m' },
      n2: { ENABLE_ORIG_SRC: 'true' },
    }
    const threads = { ZTUNNEL_WORKER_THREADS: '2' }
    const [, required] = await Promise.all([
      lab.startProxy('n1', { ...threads, ...settings.n1 }),
      lab.startProxy('n2', { ...threads, ...settings.n2 }),
    ])
    const listening = () => lab.exec('server', 'ss', '-Hltn', 'sport = :15008').trim().split('\n').length
    assert.equal(await exchange(lab, 'client', echoTo, 'kept'), 'kept')
    assert.deepEqual(peers, [client.ip])
    assert.equal(listening(), 2)
    const dump = JSON.parse(await lab.run('n1', 'curl', '-sS', 'http://127.0.0.1:15000/config_dump'))
    const expires = Date.parse(dump.certificates[0].certChain[0].expirationTime)
    assert.ok(Math.abs(expires - Date.now() - 1_800_000) < 120_000, `${new Date(expires)}`)
    assert.equal(await required.stop(), 0)
    await lab.startProxy('n2', { ...threads, ENABLE_ORIG_SRC: 'false', INPOD_PORT_REUSE: 'false' })
    assert.equal(listening(), 1)
    await eventually(() => echoWorks(lab), 'a call')
    assert.deepEqual(peers, [client.ip, server.ip])
  })

  test('a successor takes over without a moment in which the pod is not served', async () => {
    await using lab = await createEchoLab({ nodes: ['spare'] })
    const [, old] = await Promise.all([lab.startProxy('n1'), lab.startProxy('n2')])
    const long = await lab.connect('client', echoTo)
    ignoreErrors(long)
    assert.equal(await say(long, 'before'), 'before')
    let failures = 0
    let calls = 0
    let running = true
    const calling = (async () => {
      while (running) {
        calls += 1
        const text = `call ${calls}`
        if ((await exchange(lab, 'client', echoTo, text).catch(() => undefined)) !== text) failures += 1
      }
    })()
    // As in a rollout, the successor is a pod of its own; what it serves is the same.
    const successor = lab.launch('spare', { NODE_NAME: 'n2', INPOD_UDS: join(lab.directory, 'n2.sock') })
    await lab.serveProxy('n2')
    const stopped = old.stop()
    await old.logged(/shutting down/)
    await eventually(() => successor.log().includes('connection complete'), 'the successor carries connections')
    assert.equal(await say(long, 'during'), 'during')
    long.end()
    assert.equal(await stopped, 0)
    const seen = calls
    await eventually(() => calls > seen + 20, 'calls after the hand-over')
    running = false
    await calling
    assert.equal(failures, 0)
  })

  test('connections that do not end are cut at the drain deadline', async () => {
    await using lab = await createEchoLab()
    const [, proxy] = await Promise.all([
      lab.startProxy('n1'),
      lab.startProxy('n2', { CONNECTION_TERMINATION_DEADLINE: '1s' }),
    ])
    const socket = await lab.connect('client', echoTo)
    ignoreErrors(socket)
    assert.equal(await say(socket, 'hello'), 'hello')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const startedAt = performance.now()
    assert.equal(await proxy.stop(), 0)
    const tookMs = performance.now() - startedAt
    assert.ok(tookMs > 900 && tookMs < 8000, `${tookMs}`)
    await closed
    assert.match(proxy.log(), /drain duration expired with pending connections, forcefully shutting down/)
    assert.match(proxy.log(), /connection complete.*error="connection failed to drain within the timeout"/)
    assert.match(await metricsOf(lab, 'n1'), /istio_tcp_connections_closed_total/)
  })

  test('asked twice on the terminal it ends at once, with connections open', async () => {
    await using lab = await createEchoLab()
    const [, proxy] = await Promise.all([
      lab.startProxy('n1'),
      lab.startProxy('n2', { CONNECTION_TERMINATION_DEADLINE: '1h' }),
    ])
    await proxy.logged(/file limits\tbefore=\d+ after=\d+/)
    const socket = await lab.connect('client', echoTo)
    ignoreErrors(socket)
    assert.equal(await say(socket, 'hello'), 'hello')
    proxy.process.kill('SIGINT')
    await proxy.logged(/shutting down/)
    assert.equal(await say(socket, 'still there'), 'still there')
    proxy.process.kill('SIGINT')
    assert.equal(await proxy.stopped(), 130)
  })

  test('a supervisor that asks again and again cuts nothing', async () => {
    await using lab = await createEchoLab()
    const [, proxy] = await Promise.all([lab.startProxy('n1'), lab.startProxy('n2')])
    const socket = await lab.connect('client', echoTo)
    ignoreErrors(socket)
    assert.equal(await say(socket, 'hello'), 'hello')
    proxy.process.kill('SIGTERM')
    await proxy.logged(/shutting down/)
    for (const text of ['again', 'and again']) {
      proxy.process.kill('SIGTERM')
      assert.equal(await say(socket, text), text)
    }
    socket.end()
    assert.equal(await proxy.stopped(), 0)
  })
})
