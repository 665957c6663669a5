// The other end is there for the kernel but does nothing any more, or is not there at all and nobody said so.
import assert from 'node:assert/strict'
import type net from 'node:net'
import { after, afterEach, before, suite, test } from 'node:test'
import { client, createEchoLab, echoTo, echoWorks, outsider } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { answerBack, ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod } from '../support/mesh-lab-content.ts'

/** The first ping goes out after 10 s and is waited for 20 s. */
const pingedMs = { least: 18_000, most: 45_000 }

function timeToClose(socket: net.Socket): Promise<number> {
  const startedAt = performance.now()
  return new Promise((resolve) => socket.once('close', () => resolve(performance.now() - startedAt)))
}

suite('peers that are frozen or gone', { skip: canRunLab, timeout: 240_000 }, () => {
  let lab: MeshLab
  let clientProxy: LabProxy
  let serverProxy: LabProxy
  let atServer: net.Socket[] = []
  const works = () => echoWorks(lab)

  before(async () => {
    const onSocket = (socket: net.Socket): void => {
      atServer.push(socket)
      answerBack(socket)
    }
    lab = await createEchoLab({ pods: [outsider], onSocket })
    await lab.listen('outsider', 8080, onSocket)
    const env = { KEEPALIVE_TIME: '1s', KEEPALIVE_INTERVAL: '1s', KEEPALIVE_RETRIES: '2' }
    ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
  })
  after(() => lab?.[Symbol.asyncDispose]())
  afterEach(() => {
    // One whose client is gone for good would keep this process.
    for (const socket of atServer) socket.destroy()
    atServer = []
    clientProxy.process.kill('SIGCONT')
    serverProxy.process.kill('SIGCONT')
  })

  test('the proxy of the server is frozen: its connections end by the ping, new ones fail, and all is well when it thaws', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'one'), 'one')
    const closed = timeToClose(open)
    serverProxy.process.kill('SIGSTOP')
    const waiting = await lab.connect('client', echoTo)
    ignoreErrors(waiting)
    waiting.write('into the void')
    const refused = timeToClose(waiting)
    waiting.resume()
    const took = [await closed, await refused]
    for (const ms of took) assert.ok(ms > 5000 && ms < pingedMs.most, `${took}`)
    assert.ok((took[0] ?? 0) > pingedMs.least, `${took}`)
    await clientProxy.logged(/HBONE ping timeout\/error/)
    serverProxy.process.kill('SIGCONT')
    await eventually(works, 'a call')
  })

  test('the proxy of the client is frozen: the server is told that the connection is over', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'one'), 'one')
    const [accepted] = atServer
    assert.ok(accepted)
    const closed = timeToClose(accepted)
    clientProxy.process.kill('SIGSTOP')
    const took = await closed
    assert.ok(took > pingedMs.least && took < pingedMs.most, `${took}`)
    await serverProxy.logged(/connection complete.*direction="inbound".*error=/)
    clientProxy.process.kill('SIGCONT')
    await eventually(works, 'a call')
    open.destroy()
  })

  test('a plain destination that vanished is found out by keepalive', async () => {
    const open = await lab.connect('client', { ip: outsider.ip, port: 8080 })
    ignoreErrors(open)
    assert.equal(await say(open, 'one'), 'one')
    const closed = timeToClose(open)
    lab.exec('outsider', 'ip', 'link', 'set', 'eth0', 'down')
    const took = await closed
    assert.ok(took > 1000 && took < 15_000, `${took}`)
    await clientProxy.logged(/connection complete.*dst\.addr=10\.77\.2\.3:8080.*direction="outbound"/)
    lab.exec('outsider', 'ip', 'link', 'set', 'eth0', 'up')
  })
})

test('bytes that are not acknowledged end a connection at the user timeout, where there is one', {
  skip: canRunLab,
  timeout: 60_000,
}, async () => {
  const patient = { name: 'patient', ip: '10.77.2.4', node: 'n2' }
  await using lab = await createMeshLab({ pods: [client, patient, outsider], nodes: ['n1', 'n2'] })
  for (const pod of [client, patient]) announcePod(lab, pod)
  const atServer: net.Socket[] = []
  await lab.listen('outsider', 8080, (socket) => {
    atServer.push(socket)
    answerBack(socket)
  })
  const env = { KEEPALIVE_TIME: '1s', KEEPALIVE_INTERVAL: '1s', KEEPALIVE_RETRIES: '2' }
  const [proxy] = await Promise.all([
    lab.startProxy('n1', { ...env, USER_TIMEOUT_ENABLED: 'true' }),
    lab.startProxy('n2', env),
  ])
  const [limited, endless] = await Promise.all(
    ['client', 'patient'].map(async (pod) => {
      const socket = await lab.connect(pod, { ip: outsider.ip, port: 8080 })
      ignoreErrors(socket)
      assert.equal(await say(socket, 'one'), 'one')
      return socket
    }),
  )
  assert.ok(limited !== undefined && endless !== undefined)
  const closed = timeToClose(limited)
  lab.exec('outsider', 'ip', 'link', 'set', 'eth0', 'down')
  // Keepalive looks after connections at rest only; these have something under way.
  for (const socket of [limited, endless]) socket.write('two')
  const took = await closed
  assert.ok(took > 2000 && took < 15_000, `${took}`)
  await proxy.logged(/connection complete.*dst\.addr=10\.77\.2\.3:8080.*direction="outbound"/)
  assert.equal(endless.destroyed, false)
  for (const socket of [endless, ...atServer]) socket.destroy()
})
