// Topic admin: real servers on free ports.
import assert from 'node:assert/strict'
import { openSync } from 'node:fs'
import { createLogging } from '../../../src/observability/index.ts'
import { startHttpServer } from '../../../src/ztunnel/admin/http-server.ts'
import { dumpAll, dumpPods, startAdminServer } from '../../../src/ztunnel/admin/index.ts'
import { readinessRoutes } from '../../../src/ztunnel/admin/readiness.ts'
import { dumpConfig, loadConfig } from '../../../src/ztunnel/config/index.ts'
import { createPods } from '../../../src/ztunnel/pods/index.ts'
import { createProcessProfiler } from '../../../src/ztunnel/profiling/index.ts'
import { createReadiness } from '../../../src/ztunnel/readiness.ts'
import { parseLocalFile, serviceKey } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, type TopicRunner } from './topic.ts'

export const runAdmin: TopicRunner = async (one) => {
  switch (one.kind) {
    case 'http':
      return await runHttp(one)
    case 'readiness':
      return await runReadiness(one)
    case 'workload-state':
      return await runWorkloadState(one)
    case 'config-dump':
      return await runConfigDump(one)
    default:
      throw new Error(`unknown kind ${one.kind}`)
  }
}

function dumpSources(localConfig: Data) {
  const config = loadConfig({ env: {}, machineCpus: 4, knowsKeyExchange: () => true, readFile: () => undefined })
  return {
    view: meshOf(undefined, localConfig),
    version: { version: 'test', gitRevision: 'test', istioVersion: 'test' },
    config: dumpConfig(config),
    localContent: parseLocalFile(JSON.stringify(localConfig)),
    certificates: () => [],
  }
}

async function runHttp(one: Data): Promise<void> {
  await using server = await startAdminServer(
    {
      logging: createLogging({ sink: { write: () => {}, dropped: 0, flush: async () => {}, flushSync: () => {} } }),
      dump: dumpSources({}),
      profiler: createProcessProfiler(),
      shutDown: () => assert.fail('no case asks for a shutdown'),
    },
    { port: 0, ipv6Loopback: false },
  )
  for (const request of one.requests) {
    const response = await fetch(`http://127.0.0.1:${server.port}${request.path}`, { method: request.method })
    const body = await response.text()
    assert.equal(response.status, request.status, request.path)
    if (request.body !== undefined) assert.equal(body, request.body)
    if (request.bodyContains !== undefined) assert.ok(body.includes(request.bodyContains), body)
    const contentType = response.headers.get('content-type') ?? ''
    if (request.contentTypeContains !== undefined) assert.ok(contentType.includes(request.contentTypeContains))
  }
}

async function runReadiness(one: Data): Promise<void> {
  for (const { pending, status, body } of one.table) {
    const readiness = createReadiness()
    for (const name of pending) readiness.task(name)
    await using server = await startHttpServer(readinessRoutes(readiness), { port: 0, ip: '127.0.0.1' })
    const response = await fetch(`http://127.0.0.1:${server.port}/healthz/ready`)
    assert.equal(response.status, status)
    assert.equal(await response.text(), body)
  }
}

async function runWorkloadState(one: Data): Promise<void> {
  let fails = false
  const proxy = { drain: async () => {}, stop: async () => {} }
  const pods = createPods({
    start: async () => {
      if (fails) throw new Error('port taken')
      return proxy
    },
  })
  try {
    pods.beginStream()
    await pods.handle({ kind: 'snapshot-sent' })
    for (const { event, uid, info, expect } of one.steps) {
      fails = event === 'pending'
      if (event === 'down') await pods.handle({ kind: 'delete', uid })
      else await pods.handle({ kind: 'add', uid, pod: info, namespaceFd: openSync('/proc/self/ns/net', 'r') })
      assert.deepEqual(dumpPods(pods.list().map((one) => ({ ...one, connections: [] }))), expect)
    }
  } finally {
    await pods.stop('test ended')
  }
}

async function runConfigDump(one: Data): Promise<void> {
  const dump = JSON.parse(JSON.stringify(await dumpAll(dumpSources(one.localConfig)))) as Data
  const { workloads, services, policies, stagedServices } = one.expect
  assert.deepEqual(dump.stagedServices, stagedServices)
  compareList(dump.workloads, workloads, (item) => item.uid)
  compareList(dump.services, services, serviceKey)
  compareList(dump.policies, policies, (item) => `${item.namespace}/${item.name}`)
}

function compareList(actual: readonly Data[], expected: readonly Data[], key: (item: Data) => string): void {
  for (const item of expected) {
    const found = actual.find((one) => key(one) === key(item))
    for (const [name, value] of Object.entries(item)) assert.deepEqual(found?.[name], value, `${key(item)}: ${name}`)
  }
}
