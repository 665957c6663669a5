// Ends that are unusual but happen: blocked ports, clients that give up, pods that go, tokens that rotate, loopback without IPv6.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { client, createEchoLab, echoTo, echoWorks } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, exchange, hostnameOf } from '../support/mesh-lab-content.ts'

const late = { name: 'late', ip: '10.77.2.4', node: 'n1' }

suite('at the edges of a node proxy', { skip: canRunLab, timeout: 180_000 }, () => {
  let lab: MeshLab
  let clientProxy: LabProxy
  let serverProxy: LabProxy
  let token = ''
  const works = () => echoWorks(lab)
  const dump = (node: string) => lab.run(node, 'curl', '-sS', 'http://127.0.0.1:15000/config_dump')
  const resolve = (name: string) => {
    const script = `
      const { Resolver } = require('node:dns/promises')
      const resolver = new Resolver({ timeout: 2000, tries: 1 })
      resolver.setServers(['10.77.0.1'])
      resolver.resolve4(process.argv[1]).then((found) => console.log(found.join()), (error) => console.log(error.code))`
    return lab.run('client', process.execPath, '-e', script, name)
  }

  before(async () => {
    lab = await createEchoLab({ pods: [late] })
    // IPv6 is there, but not on loopback.
    lab.exec('client', 'sysctl', '-qw', 'net.ipv6.conf.lo.disable_ipv6=1')
    token = join(lab.directory, 'token')
    writeFileSync(token, 'first-token\n')
    ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1', { AUTH_TOKEN: token }), lab.startProxy('n2')])
  })
  after(() => lab?.[Symbol.asyncDispose]())

  test('without IPv6 on loopback DNS is answered on 127.0.0.1', async () => {
    assert.equal(await resolve(hostnameOf('echo')), '10.78.0.9\n')
    assert.equal(await works(), true)
  })

  test('a token file is read for every request', async () => {
    assert.ok(lab.controlPlane.tokens.includes('first-token'))
    writeFileSync(token, 'second-token\n')
    announcePod(lab, late)
    await eventually(() => lab.controlPlane.tokens.includes('second-token'), 'a request with the new token')
  })

  test('a blocked port 15008 is told as such after 10 s; a client that gives up earlier is noticed', async () => {
    const blocked = { name: 'blocked', ip: '10.77.2.9', node: 'n2' }
    announcePod(lab, blocked)
    await eventually(async () => (await dump('n1')).includes('c1//Pod/default/blocked'), 'the workload')
    lab.exec('client', 'nft', 'add table ip blocking')
    lab.exec('client', 'nft', 'add chain ip blocking out { type filter hook output priority 0; }')
    lab.exec('client', 'nft', 'add rule ip blocking out ip daddr 10.77.2.9 tcp dport 15008 drop')
    const patient = await lab.connect('client', { ip: blocked.ip, port: 80 })
    ignoreErrors(patient)
    const startedAt = performance.now()
    const hasty = await lab.connect('client', { ip: blocked.ip, port: 81 })
    ignoreErrors(hasty)
    await eventually(async () => (await dump('n1')).includes('"originalDst": "10.77.2.9:81"'), 'the connection')
    hasty.resetAndDestroy()
    await clientProxy.logged(/connection complete.*dst\.hbone_addr=10\.77\.2\.9:81.*error="client gone"/)
    assert.ok(performance.now() - startedAt < 8000)
    const ended = new Promise((resolve) => patient.resume().once('end', resolve))
    await ended
    const took = performance.now() - startedAt
    assert.ok(took > 9000 && took < 20_000, `${took}`)
    await clientProxy.logged(
      /dst\.hbone_addr=10\.77\.2\.9:80.*error="connection timed out, maybe a NetworkPolicy is blocking HBONE port 15008: /,
    )
    const metrics = await lab.run('n1', 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')
    assert.match(metrics, /^istio_tcp_connections_failed_total\{.*response_flags="NETWORK_POLICY".*\} 1$/m)
  })

  test('a source that the control plane does not know is held for 5 s and refused, and served once it is known', async () => {
    lab.controlPlane.removeAddress('c1//Pod/default/client')
    await eventually(async () => !(await dump('n1')).includes('c1//Pod/default/client'), 'the removal')
    const startedAt = performance.now()
    assert.equal(await works(), false)
    assert.ok(performance.now() - startedAt > 4500)
    await clientProxy.logged(
      /connection failed.*error="failed to fetch information about local workload: client\.default \(client\)"/,
    )
    const held = exchange(lab, 'client', echoTo, 'held')
    setTimeout(() => announcePod(lab, client), 500)
    assert.equal(await held, 'held')
  })

  test('a pod that goes: its connections end at both ends, peers are told, and the log stays quiet', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'hello'), 'hello')
    const closed = new Promise((resolve) => open.once('close', resolve))
    const before = serverProxy.log().length
    assert.equal(await lab.agentOf('n2').remove('uid-server'), '')
    await closed
    await serverProxy.logged(/connection complete.*error="connection closed due to connection drain"/)
    assert.ok(serverProxy.log().length - before < 4000, serverProxy.log().slice(before))
    assert.equal(await works(), false)
    const pod = { name: 'server', namespace: 'default', serviceAccount: 'server' }
    assert.equal(
      await lab.agentOf('n2').add({ uid: 'uid-server', namespacePath: lab.namespacePath('server'), pod }),
      '',
    )
    await eventually(works, 'a call')
  })

  test('a pod whose port is taken is pending, the process not ready, until the port is free', async () => {
    const readiness = () => lab.run('n1', 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready')
    assert.equal(await lab.agentOf('n1').remove('uid-late'), '')
    const taken = await lab.listen('late', 15008, ignoreErrors)
    const pod = { name: 'late', namespace: 'default', serviceAccount: 'late' }
    const added = { uid: 'uid-late', namespacePath: lab.namespacePath('late'), pod }
    assert.match(
      await lab.agentOf('n1').add(added),
      /^failure to start proxy : failed to bind to address \[::\]:15008: .*EADDRINUSE/,
    )
    assert.equal(await readiness(), 'not ready, pending: workload proxy manager\n')
    assert.equal(await works(), true)
    taken.close()
    await eventually(async () => (await readiness()) === 'ready\n', 'readiness')
  })

  test('the node agent restarts again and again: pods are served all the while, and taken up where they were', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'before'), 'before')
    for (let round = 0; round < 5; round += 1) {
      lab.agentOf('n1').close()
      assert.equal(await works(), true)
      await lab.serveProxy('n1')
      assert.equal(await say(open, `round ${round}`), `round ${round}`)
    }
    open.destroy()
    const lines = clientProxy.log().split('\n')
    assert.equal(lines.filter((line) => /pod proxy started.*uid-client/.test(line)).length, 1)
  })

  test('an agent that breaks the protocol is told so, connections may end, and the process ends with status 1', async () => {
    assert.match(
      await lab.agentOf('n1').completeSnapshot(),
      /^failure to process message : pod snapshot received already$/,
    )
    assert.equal(await clientProxy.stopped(), 1)
    assert.match(clientProxy.log(), /the node agent broke the protocol/)
  })
})
