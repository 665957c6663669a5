// What operators and dashboards see of a node proxy: every metric, the log as JSON, every page of its servers.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { security } from '../../src/proto/index.ts'
import { createEchoLab, echoTo, outsider } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { exchange, hostnameOf } from '../support/mesh-lab-content.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function parse(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', inner = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (value === undefined) return []
    const labels = Object.fromEntries([...inner.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, text]) => [key, text]))
    return [{ name, labels, value: Number(value) }]
  })
}

suite('what is seen of a node proxy', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  let clientProxy: LabProxy
  let serverProxy: LabProxy
  const curl = (node: string, ...args: string[]) => lab.run(node, 'curl', '-sS', '-m', '10', ...args)
  const scrape = async (node: string) => parse(await curl(node, 'http://127.0.0.1:15020/metrics'))

  before(async () => {
    lab = await createEchoLab({ pods: [outsider] })
    const env = { LOG_FORMAT: 'json', ISTIO_META_ISTIO_VERSION: '1.27.0', ISTIO_META_CLUSTER_ID: 'c1' }
    ;[clientProxy, serverProxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
  })
  after(() => lab?.[Symbol.asyncDispose]())

  async function sample(node: string, name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const found = (await scrape(node)).filter(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    )
    return found.reduce((sum, { value }) => sum + value, 0)
  }
  const becomes = (
    node: string,
    name: string,
    labels: Readonly<Record<string, string>>,
    holds: (value: number) => boolean,
  ) => eventually(async () => holds(await sample(node, name, labels)), `${name} ${JSON.stringify(labels)}`)

  test('a connection is counted at both ends, with the same bytes and who the two are', async () => {
    assert.equal(await exchange(lab, 'client', echoTo, 'twelve bytes'), 'twelve bytes')
    for (const [node, reporter] of [
      ['n1', 'source'],
      ['n2', 'destination'],
    ] as const) {
      const labels = {
        reporter,
        source_workload: 'client',
        source_canonical_service: 'client',
        source_workload_namespace: 'default',
        source_principal: 'spiffe://cluster.local/ns/default/sa/client',
        source_cluster: 'c1',
        destination_workload: 'server',
        destination_service: hostnameOf('echo'),
        destination_service_name: 'echo',
        destination_service_namespace: 'default',
        destination_principal: 'spiffe://cluster.local/ns/default/sa/server',
        request_protocol: 'tcp',
        connection_security_policy: 'mutual_tls',
        response_flags: '-',
      }
      await becomes(node, 'istio_tcp_connections_opened_total', labels, (value) => value === 1)
      await becomes(node, 'istio_tcp_connections_closed_total', labels, (value) => value === 1)
      await becomes(node, 'istio_tcp_received_bytes_total', labels, (value) => value === 12)
      await becomes(node, 'istio_tcp_sent_bytes_total', labels, (value) => value === 12)
    }
  })

  test('open sockets are a gauge', async () => {
    const socket = await lab.connect('client', echoTo)
    socket.on('error', () => undefined)
    await becomes('n1', 'istio_tcp_sockets_open', { reporter: 'source' }, (value) => value === 1)
    // At the server it is the connections between the proxies, one a worker of the client's that had a client; they stay for the next.
    await becomes('n2', 'istio_tcp_sockets_open', { reporter: 'destination' }, (value) => value === 1 || value === 2)
    socket.destroy()
    await becomes('n1', 'istio_tcp_sockets_open', { reporter: 'source' }, (value) => value === 0)
  })

  test('a refusal by policy is a failed connection with DENY at both ends', async () => {
    lab.controlPlane.setPolicy({
      name: 'none',
      namespace: 'default',
      scope: security.Scope.NAMESPACE,
      action: security.Action.ALLOW,
      groups: [],
    })
    // A connection that is open when the policy arrives is cut, which its client sees as something else.
    await eventually(async () => {
      await exchange(lab, 'client', echoTo, 'x').catch(() => '')
      return (await sample('n1', 'istio_tcp_connections_failed_total', { response_flags: 'DENY' })) >= 1
    }, 'a refusal')
    for (const node of ['n1', 'n2']) {
      await becomes(node, 'istio_tcp_connections_failed_total', { response_flags: 'DENY' }, (value) => value >= 1)
      await becomes(node, 'istio_tcp_connections_closed_total', { response_flags: 'DENY' }, (value) => value >= 1)
    }
    lab.controlPlane.removePolicy('default/none')
    await eventually(async () => (await exchange(lab, 'client', echoTo, 'x').catch(() => '')) === 'x', 'a call')
  })

  test('DNS queries are counted, answered here or elsewhere', async () => {
    const script = `
      const { Resolver } = require('node:dns/promises')
      const resolver = new Resolver({ timeout: 500, tries: 1 })
      resolver.setServers(['10.77.0.1'])
      resolver.resolve4(process.argv[1]).then((found) => console.log(found.join()), (error) => console.log(error.code))`
    const resolve = (name: string) => lab.run('client', process.execPath, '-e', script, name)
    assert.equal(await resolve(hostnameOf('echo')), '10.78.0.9\n')
    await resolve('elsewhere.example')
    const labels = { request_query_type: 'a', request_protocol: 'udp', source_canonical_service: 'client' }
    await becomes('n1', 'istio_dns_requests_total', labels, (value) => value >= 2)
    await becomes('n1', 'istio_dns_upstream_requests_total', labels, (value) => value >= 1)
  })

  test('the streams to the control plane, the pods and the process are counted', async () => {
    for (const url of [
      'type.googleapis.com/istio.workload.Address',
      'type.googleapis.com/istio.security.Authorization',
    ]) {
      assert.ok((await sample('n1', 'istio_xds_message_total', { url })) >= 1)
    }
    const url = 'type.googleapis.com/istio.workload.Address'
    assert.ok((await sample('n1', 'istio_xds_message_bytes_total', { url })) > 100)
    lab.controlPlane.cutConnections()
    await becomes('n1', 'istio_xds_connection_terminations_total', {}, (value) => value >= 1)
    assert.equal(await sample('n1', 'workload_manager_active_proxy_count'), 1)
    assert.equal(await sample('n1', 'workload_manager_pending_proxy_count'), 0)
    assert.equal(await sample('n1', 'workload_manager_proxies_started_total'), 1)
    assert.equal(await lab.agentOf('n2').remove('uid-server'), '')
    await becomes('n2', 'workload_manager_proxies_stopped_total', {}, (value) => value === 1)
    await becomes('n2', 'workload_manager_active_proxy_count', {}, (value) => value === 0)
    assert.equal(await sample('n1', 'istio_build', { component: 'ztunnel', tag: '1.27.0' }), 1)
    for (const name of [
      'process_open_fds',
      'process_max_fds',
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'process_start_time_seconds',
    ]) {
      assert.ok((await sample('n1', name)) > 0, name)
    }
    const threads = (await scrape('n1')).filter(({ name }) => name === 'lateen_event_loop_idle_seconds_total')
    assert.ok(threads.some(({ labels }) => labels.worker === 'main'))
    assert.equal(await sample('n1', 'lateen_log_lines_dropped_total'), 0)
  })

  test('help texts say what is unstable; the other path and the other format give the same', async () => {
    const text = await curl('n1', 'http://127.0.0.1:15020/stats/prometheus')
    for (const stable of ['opened', 'closed', 'received_bytes', 'sent_bytes']) {
      const name = stable.endsWith('bytes') ? stable : `connections_${stable}`
      assert.match(text, new RegExp(`^# HELP istio_tcp_${name}_total (?!.*unstable)`, 'm'))
    }
    assert.match(text, /^# HELP istio_tcp_connections_failed_total .*\(unstable\)$/m)
    const open = await curl('n1', '-i', '-H', 'accept: application/openmetrics-text', 'http://127.0.0.1:15020/metrics')
    assert.match(open, /^content-type: application\/openmetrics-text;charset=utf-8;version=1\.0\.0\r$/im)
    assert.match(open, /^# TYPE istio_tcp_connections_opened counter$/m)
    assert.ok(open.endsWith('# EOF\n'))
    const [head = ''] = (await curl('n1', '-I', 'http://127.0.0.1:15020/metrics')).split('\r\n')
    assert.match(head, / 200 /)
  })

  test('the log is one JSON object a line, with numbers as numbers', async () => {
    const line = JSON.parse(await clientProxy.logged(/"connection complete".*"bytes_sent":12\b/))
    assert.deepEqual(
      Object.keys(line).filter((key) => !key.includes('.')),
      ['level', 'time', 'scope', 'message', 'direction', 'bytes_sent', 'bytes_recv', 'duration'],
    )
    assert.equal(line.scope, 'access')
    assert.equal(line['dst.hbone_addr'], '10.77.2.2:8080')
    assert.equal(line['src.identity'], 'spiffe://cluster.local/ns/default/sa/client')
  })

  test('the admin server: index, dump with live connections, levels, profiles, the end', async () => {
    const admin = 'http://127.0.0.1:15000'
    const index = await curl('n1', `${admin}/`)
    for (const page of ['config_dump', 'logging', 'quitquitquit', 'debug/pprof/profile', 'debug/pprof/heap']) {
      assert.ok(index.includes(`href="${page}"`), page)
    }
    assert.match(await curl('n1', '-i', `${admin}/nothing`), /^HTTP\/1\.1 404 /)
    assert.equal(await curl('n1', '-g', `http://[::1]:15000/logging`, '-X', 'POST'), 'current log level is info\n')

    const dump = JSON.parse(await curl('n1', `${admin}/config_dump`))
    assert.deepEqual(Object.keys(dump), [
      'workloads',
      'services',
      'policies',
      'stagedServices',
      'staticConfig',
      'version',
      'config',
      'certificates',
      'workloadState',
    ])
    assert.deepEqual(dump.workloadState['uid-client'].info, {
      name: 'client',
      namespace: 'default',
      serviceAccount: 'client',
    })
    assert.equal(dump.workloadState['uid-client'].state, 'Up')
    assert.equal(dump.config.clusterId, 'c1')
    assert.ok(!JSON.stringify(dump).includes('test-token'))
    assert.equal(dump.certificates[0].state, 'Available')

    const profile = `${admin}/debug/pprof/profile`
    assert.match(
      await curl('n1', '-i', `${profile}?seconds=301`),
      /^HTTP\/1\.1 400 [\s\S]*invalid seconds value; expected 1-300/,
    )
    assert.match(
      await curl('n1', '-i', `${profile}?frequency=0`),
      /^HTTP\/1\.1 400 [\s\S]*invalid frequency value; expected 1-1000/,
    )
    assert.match(
      await curl('n1', '-i', 'http://127.0.0.1:15021/healthz/ready'),
      /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nready\n$/,
    )
    assert.match(await curl('n1', '-i', '-X', 'POST', 'http://127.0.0.1:15021/healthz/ready'), /^HTTP\/1\.1 405 /)

    assert.equal(
      await curl('n1', '-X', 'POST', `${admin}/logging?level=access=debug`),
      'current log level is access=debug,info\n',
    )
    assert.equal(
      await lab.agentOf('n2').add({
        uid: 'uid-server',
        namespacePath: lab.namespacePath('server'),
        pod: { name: 'server', namespace: 'default', serviceAccount: 'server' },
      }),
      '',
    )
    await eventually(async () => (await exchange(lab, 'client', echoTo, 'x').catch(() => '')) === 'x', 'a call')
    await clientProxy.logged(/"level":"debug".*"connection opened"/)
    const open = await lab.connect('client', echoTo)
    open.on('error', () => undefined)
    await eventually(async () => {
      const { connections } = JSON.parse(await curl('n1', `${admin}/config_dump`)).workloadState['uid-client']
      const [first] = connections?.outbound ?? []
      return (
        first?.protocol === 'HBONE' &&
        first.src.startsWith('10.77.2.1:') &&
        first.originalDst === '10.78.0.9:80' &&
        first.actualDst === '10.77.2.2:15008'
      )
    }, 'the connection in the dump')
    open.destroy()
    assert.equal(await curl('n1', '-X', 'POST', `${admin}/quitquitquit`), 'shutdown now\n')
    assert.equal(await clientProxy.stopped(), 0)
    assert.ok(serverProxy.pid > 0)
  })
})
