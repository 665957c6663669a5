// The plugin against the agent's real sockets.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Pod } from 'kubernetes-types/core/v1.js'
import { startPluginServer } from '../agent/plugin-server.ts'
import { defaultEnablementSelectors } from '../eligibility.ts'
import { notifyAgent, sendLog } from './agent-client.ts'
import { runPlugin } from './main.ts'

const pod: Pod = { metadata: { name: 'web', namespace: 'shop', uid: 'u1' } }
const ambient = { metadata: { name: 'shop', labels: { 'istio.io/dataplane-mode': 'ambient' } } }
const event = {
  Netns: '/run/netns/a',
  PodName: 'web',
  PodNamespace: 'shop',
  IPs: [{ Interface: 0, Address: { IP: '10.0.0.1', Mask: '////AA==' }, Gateway: '10.0.0.254' }],
}

async function agent(t: TestContext, options: { known?: boolean; labels?: boolean; fails?: string } = {}) {
  const runDir = mkdtempSync(join(tmpdir(), 'lateen-cni-'))
  const seen: { enrolled: unknown[]; lines: string[]; statuses: number[] } = { enrolled: [], lines: [], statuses: [] }
  const server = await startPluginServer({
    runDir,
    selectors: defaultEnablementSelectors,
    find: () =>
      options.known === false
        ? undefined
        : { pod, namespace: options.labels === false ? { metadata: { name: 'shop' } } : ambient },
    enroll: async (_pod, netns, ips) => {
      if (options.fails !== undefined) throw new Error(options.fails)
      seen.enrolled.push([netns, ips])
    },
    onAnswer: (status) => seen.statuses.push(status),
    log: () => undefined,
    pluginLog: (line) => seen.lines.push(line),
  })
  t.after(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(runDir, { recursive: true })
  })
  return { runDir, seen }
}

test('a new pod is enrolled with its namespace and addresses', async (t) => {
  const { runDir, seen } = await agent(t)
  await notifyAgent(runDir, event)
  assert.deepEqual(seen, { enrolled: [['/run/netns/a', ['10.0.0.1']]], lines: [], statuses: [200] })
})

for (const [why, options, text] of [
  ['is not known', { known: false }, /not known to the node agent yet/],
  ['is not eligible', { labels: false }, /is unexpectedly not eligible for ambient enrollment$/],
  ['could not be enrolled', { fails: 'no ztunnel connection' }, /\(status code 500\): no ztunnel connection$/],
] as const) {
  test(`a pod that ${why} does not start`, async (t) => {
    const { runDir } = await agent(t, options)
    await assert.rejects(notifyAgent(runDir, event), text)
  })
}

test('an earlier pod of the same name is not taken for the new one', async (t) => {
  const { runDir, seen } = await agent(t)
  await assert.rejects(notifyAgent(runDir, { ...event, PodUID: 'u2' }), /not known to the node agent yet/)
  await notifyAgent(runDir, { ...event, PodUID: 'u1' })
  assert.equal(seen.enrolled.length, 1)
})

test('without an agent a pod of the mesh does not start', async () => {
  await assert.rejects(notifyAgent('/nonexistent', event), /failed to send event request/)
})

test('log lines reach the agent', async (t) => {
  const { runDir, seen } = await agent(t)
  await sendLog(runDir, ['{"msg":"one"}'])
  assert.deepEqual(seen.lines, ['{"msg":"one"}'])
})

test('VERSION names every version of the protocol', async () => {
  const { stdout, exitCode } = await runPlugin({ CNI_COMMAND: 'VERSION' }, '')
  assert.equal(exitCode, 0)
  assert.deepEqual(JSON.parse(stdout).supportedVersions, [
    '0.1.0',
    '0.2.0',
    '0.3.0',
    '0.3.1',
    '0.4.0',
    '1.0.0',
    '1.1.0',
  ])
})

for (const [what, env, stdin, expected] of [
  ['an unknown command', { CNI_COMMAND: 'NOPE' }, '{}', { code: 4, msg: 'unknown CNI_COMMAND: NOPE' }],
  ['no JSON', { CNI_COMMAND: 'ADD' }, 'x', { code: 6 }],
  [
    'a list',
    { CNI_COMMAND: 'ADD' },
    '[]',
    { code: 6, msg: 'failed to parse network configuration: expected an object' },
  ],
  [
    'a selector that selects nothing by mistake',
    { CNI_COMMAND: 'ADD' },
    '{"enablement_selectors":[{"podSelector":{"matchLabel":{"a":"b"}}}]}',
    {
      code: 6,
      msg: 'failed to parse network configuration: enablement_selectors[0]: podSelector.matchLabel: expected matchLabels or matchExpressions',
    },
  ],
  ['another version', { CNI_COMMAND: 'ADD' }, '{"cniVersion":"9.0.0"}', { code: 1 }],
  [
    'unknown arguments',
    { CNI_COMMAND: 'ADD', CNI_ARGS: 'FOO=1' },
    '{"cniVersion":"1.0.0"}',
    { cniVersion: '1.0.0', code: 999, msg: 'failed to load args: ARGS: unknown args ["FOO"]' },
  ],
] as const) {
  test(`${what} is an error object on stdout`, async () => {
    const { stdout, exitCode } = await runPlugin(env, stdin)
    assert.equal(exitCode, 1)
    const said = JSON.parse(stdout) as Record<string, unknown>
    for (const [key, value] of Object.entries(expected)) assert.equal(said[key], value)
  })
}
