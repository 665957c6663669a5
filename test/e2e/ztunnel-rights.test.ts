// A node proxy without the rights it needs says at its start which are missing; one that can do without them does.
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { outsider } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { answerBack } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, exchange } from '../support/mesh-lab-content.ts'

const server = { name: 'server', ip: '10.77.2.2', node: 'n1' }
const to = { ip: server.ip, port: 8080 }
const networkRights = ['net_admin', 'net_raw']

suite('a node proxy with fewer rights', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  const running: LabProxy[] = []
  const peers: (string | undefined)[] = []

  before(async () => {
    lab = await createMeshLab({ pods: [server, outsider], nodes: ['n1'] })
    announcePod(lab, server)
    await lab.listen('server', 8080, (socket) => {
      peers.push(socket.remoteAddress)
      answerBack(socket)
    })
    // A proxy in the pod's own namespace reaches its control plane past the redirection, which it cannot mark its packets for.
    lab.exec('server', 'nft', 'insert rule ip mesh nat_out ip daddr 10.77.0.1 accept')
  })
  after(() => lab?.[Symbol.asyncDispose]())
  afterEach(async () => {
    peers.length = 0
    await Promise.all(running.splice(0).map((proxy) => proxy.stop('SIGKILL')))
  })

  const launch = (name: string, env: Readonly<Record<string, string>>, without: readonly string[]) => {
    const proxy = lab.launch(name, env, { without })
    running.push(proxy)
    return proxy
  }
  const dedicated = (env: Readonly<Record<string, string>>, without: readonly string[] = networkRights) =>
    launch('server', { PROXY_MODE: 'dedicated', PROXY_WORKLOAD_INFO: 'default/server/server', ...env }, without)
  const isReady = async () => {
    const answer = lab.run('server', 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready')
    return (await answer.catch(() => '')) === 'ready\n'
  }

  test('for all pods of a node it must enter their namespaces', async () => {
    const proxy = launch('n1', {}, ['sys_admin'])
    assert.equal(await proxy.stopped(), 1)
    assert.match(proxy.log(), /setns: EPERM \(failed to set netns: is CAP_SYS_ADMIN missing\?\)/)
  })

  test('and mark its packets', async () => {
    const proxy = launch('n1', {}, networkRights)
    assert.equal(await proxy.stopped(), 1)
    assert.match(proxy.log(), /setsockopt: EPERM \(failed to set socket mark: is CAP_NET_ADMIN missing\?\)/)
  })

  test('source addresses that must be kept and cannot end the start', async () => {
    const proxy = dedicated({ ENABLE_ORIG_SRC: 'true' })
    assert.equal(await proxy.stopped(), 1)
    assert.match(
      proxy.log(),
      /failed to bind to address \[::\]:15008: setsockopt: EPERM \(failed to make the socket transparent: is CAP_NET_ADMIN missing\?\)/,
    )
  })

  for (const [what, env] of [
    ['that are kept where it is possible', {}],
    ['that are not to be kept', { ENABLE_ORIG_SRC: 'false' }],
  ] as const) {
    test(`source addresses ${what}, without the right to, are the proxy's own`, async () => {
      const proxy = dedicated(env)
      await eventually(isReady, 'readiness')
      assert.equal(await exchange(lab, 'outsider', to, 'hello'), 'hello')
      assert.deepEqual(peers, [server.ip])
      await proxy.logged(/connection complete.*src\.addr=10\.77\.2\.3:\d+.*direction="inbound"/)
    })
  }

  test('with the right to, those that must be kept are', async () => {
    dedicated({ ENABLE_ORIG_SRC: 'true', PACKET_MARK: '1337' }, [])
    await eventually(isReady, 'readiness')
    assert.equal(await exchange(lab, 'outsider', to, 'hello'), 'hello')
    assert.deepEqual(peers, [outsider.ip])
  })
})
