// Revoked certificates: open connections end, new ones are refused, and both are told and counted.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, suite, test } from 'node:test'
import { createEchoLab, echoTo, echoWorks } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'

const revoked = 'connection closed: peer certificate revoked by CRL'

suite('revoked certificates', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  const proxies = new Map<string, LabProxy>()
  const listOf = (node: string) => join(lab.directory, `${node}.crl`)
  const works = () => echoWorks(lab)
  const serialsOf = (name: string) => lab.controlPlane.issuedSerials(`spiffe://cluster.local/ns/default/sa/${name}`)
  const revokeAt = async (node: string, name: string) =>
    writeFileSync(listOf(node), await lab.controlPlane.revocationList(serialsOf(name)))
  const metric = async (node: string, name: string, ...labels: string[]) => {
    const text = await lab.run(node, 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`))
    return lines
      .filter((line) => labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  before(async () => {
    lab = await createEchoLab()
  })
  after(() => lab?.[Symbol.asyncDispose]())
  beforeEach(async () => {
    await Promise.all([...proxies.values()].map((proxy) => proxy.stop('SIGKILL')))
    for (const node of ['n1', 'n2']) {
      rmSync(listOf(node), { force: true })
      proxies.set(node, await lab.startProxy(node, { CRL_PATH: listOf(node), ZTUNNEL_WORKER_THREADS: '1' }))
    }
    await eventually(works, 'a call')
  })

  test('of a client: what it has open ends at once, and it gets in no more', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'one'), 'one')
    const closed = new Promise((resolve) => open.once('close', resolve))
    await revokeAt('n2', 'client')
    await closed
    await proxies.get('n2')?.logged(new RegExp(`connection complete.*direction="inbound".*error="${revoked}"`))
    assert.equal(await metric('n2', 'istio_tcp_connections_closed_total', 'response_flags="CERT_REVOKED"'), 1)
    // What was open was let in before: only those refused at the door count.
    const rejections = () => metric('n2', 'istio_crl_policy_rejections_total', 'reporter="destination"')
    assert.equal(await rejections(), 0)
    assert.equal(await works(), false)
    await proxies.get('n2')?.logged(new RegExp(`connection failed.*error="tls handshake error: ${revoked}"`))
    await eventually(async () => (await rejections()) === 1, 'the refusal is counted')
  })

  test('of a server: its clients leave it and go there no more', async () => {
    const open = await lab.connect('client', echoTo)
    ignoreErrors(open)
    assert.equal(await say(open, 'one'), 'one')
    const closed = new Promise((resolve) => open.once('close', resolve))
    await revokeAt('n1', 'server')
    await closed
    await proxies.get('n1')?.logged(new RegExp(`connection complete.*direction="outbound".*error="${revoked}"`))
    assert.equal(await works(), false)
    await eventually(
      async () => (await metric('n1', 'istio_tcp_connections_failed_total', 'response_flags="CERT_REVOKED"')) === 2,
      'both are counted as failed',
    )
    assert.equal(await metric('n1', 'istio_crl_policy_rejections_total', 'reporter="source"'), 1)
    assert.equal(await works(), false)
    assert.equal(await metric('n1', 'istio_crl_policy_rejections_total', 'reporter="source"'), 2)
  })

  test('a file that cannot be read as lists lets nobody in and keeps the proxy from being ready', async () => {
    await proxies.get('n2')?.stop('SIGKILL')
    writeFileSync(listOf('n2'), 'no list')
    const proxy = await lab.startProxy('n2', { CRL_PATH: listOf('n2'), ZTUNNEL_WORKER_THREADS: '1' })
    proxies.set('n2', proxy)
    const readiness = () => lab.run('n2', 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready')
    await eventually(async () => (await readiness()) === 'not ready, pending: revocation lists\n', 'is not ready')
    assert.equal(await works(), false)
    writeFileSync(listOf('n2'), '')
    await eventually(async () => (await readiness()) === 'ready\n', 'readiness')
    await eventually(works, 'a call')
  })
})
