// The plugin's ADD command while the API server is away, or refuses the token that the plugin was given.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { parse, stringify } from 'yaml'
import { createRunningPod, namespaceNamed } from '../../../test/support/cluster-objects.ts'
import { startApi } from '../../../test/support/embedded-api.ts'
import { type KubeObject, resources } from '../../api/index.ts'
import { createKubeClient } from '../../kube/index.ts'
import { startPluginServer } from '../agent/plugin-server.ts'
import { defaultEnablementSelectors } from '../eligibility.ts'
import { type PluginOutput, runPlugin } from './main.ts'

interface Node {
  /** Runs ADD for the pod `web` of the mesh. */
  add(): Promise<PluginOutput>
  readonly kubeconfig: string
  /** Paths of the network namespaces that the agent was asked to capture. */
  readonly captured: readonly string[]
  stopApi(): Promise<void>
  startApi(): Promise<unknown>
  readonly port: number
}

async function startNode(t: TestContext): Promise<Node> {
  const runDir = mkdtempSync(join(tmpdir(), 'lateen-plugin-'))
  let api = await startApi(join(runDir, 'api'))
  const port = api.addresses[0]?.port ?? 0
  const client = await createKubeClient({ kubeconfig: api.kubeconfig })
  const namespace = namespaceNamed('shop', { 'istio.io/dataplane-mode': 'ambient' })
  await client.create(resources.namespaces, namespace)
  const pod = await createRunningPod(client, { namespace: 'shop', name: 'web' }, { ip: '10.0.0.2', account: 'web' })
  await client.close()
  const kubeconfig = join(runDir, 'istio-cni-kubeconfig')
  writeFileSync(kubeconfig, readFileSync(api.kubeconfig))
  const captured: string[] = []
  const agent = await startPluginServer({
    runDir,
    selectors: defaultEnablementSelectors,
    find: () => ({ pod: pod as Pod, namespace: namespace as Namespace & KubeObject }),
    enroll: async (_pod, netns) => void captured.push(netns),
    onAnswer: () => undefined,
    log: () => undefined,
    pluginLog: () => undefined,
  })
  t.after(async () => {
    await agent[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
    rmSync(runDir, { recursive: true })
  })
  const config = {
    cniVersion: '1.0.0',
    name: 'pods',
    type: 'istio-cni',
    cni_agent_run_dir: runDir,
    ambient_enabled: true,
    enable_ambient_detection_retry: true,
    enablement_selectors: defaultEnablementSelectors,
    plugin_log_level: 'error',
    prevResult: { cniVersion: '1.0.0', ips: [{ address: '10.0.0.2/24' }] },
  }
  const env = {
    CNI_COMMAND: 'ADD',
    CNI_NETNS: '/run/netns/web',
    CNI_ARGS: `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=${pod.metadata.uid}`,
  }
  return {
    add: () => runPlugin(env, JSON.stringify(config)),
    kubeconfig,
    captured,
    port,
    stopApi: async () => api[Symbol.asyncDispose](),
    startApi: async () => {
      api = await startApi(join(runDir, 'api'), port)
    },
  }
}

test('a pod that starts while the API server restarts is captured when it is back', { timeout: 60_000 }, async (t) => {
  const node = await startNode(t)
  await node.stopApi()
  const refusing = createServer((socket) => socket.destroy()).listen(node.port, '127.0.0.1')
  const adding = node.add()
  await once(refusing, 'connection')
  refusing.close()
  await once(refusing, 'close')
  await node.startApi()
  const { exitCode, stdout } = await adding
  assert.equal(exitCode, 0, stdout)
  assert.deepEqual(node.captured, ['/run/netns/web'])
})

test('a token that is refused is read again: the agent has written a new one meanwhile', {
  timeout: 60_000,
}, async (t) => {
  const node = await startNode(t)
  const good = readFileSync(node.kubeconfig, 'utf8')
  const config = parse(good)
  const asked = `${node.kubeconfig}.asked`
  const credential = JSON.stringify({ kind: 'ExecCredential', status: { token: 'ended' } })
  writeFileSync(`${node.kubeconfig}.sh`, `#!/bin/sh\necho '${credential}'\necho > '${asked}'\n`, { mode: 0o755 })
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: `${node.kubeconfig}.sh` }
  writeFileSync(node.kubeconfig, stringify({ ...config, users: [{ name: 'admin', user: { exec } }] }))
  const watcher = watch(dirname(asked))
  const adding = node.add()
  while (!existsSync(asked)) await once(watcher, 'change')
  watcher.close()
  writeFileSync(node.kubeconfig, good)
  const { exitCode, stdout } = await adding
  assert.equal(exitCode, 0, stdout)
  assert.deepEqual(node.captured, ['/run/netns/web'])
})
