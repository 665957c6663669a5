import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

const program = join(import.meta.dirname, '../../commands/main.ts')
const root = process.getuid?.() === 0 ? false : 'needs root'

test('an agent that waits for the API server ends when it is told to, and leaves everything as it is', {
  skip: root,
  timeout: 60_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-agent-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const config = {
    'current-context': 'here',
    // Nothing listens there in a network namespace of its own.
    clusters: [{ name: 'here', cluster: { server: 'https://127.0.0.1:6443' } }],
    users: [{ name: 'agent', user: { token: 'none' } }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'agent' } }],
  }
  writeFileSync(join(dir, 'kubeconfig'), JSON.stringify(config))
  const { KUBERNETES_SERVICE_HOST: _, ...env } = process.env
  const agent = spawn('unshare', ['--net', '--', process.execPath, program, 'cni-agent'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...env,
      KUBECONFIG: join(dir, 'kubeconfig'),
      NODE_NAME: 'n1',
      AMBIENT_ENABLED: 'true',
      MOUNTED_CNI_NET_DIR: join(dir, 'net.d'),
      MOUNTED_CNI_BIN_DIR: join(dir, 'bin'),
      CNI_AGENT_RUN_DIR: join(dir, 'run'),
      ZTUNNEL_UDS_ADDRESS: join(dir, 'ztunnel.sock'),
    },
  })
  t.after(() => agent.kill('SIGKILL'))
  const ended = once(agent, 'exit')
  const lines: string[] = []
  for await (const line of createInterface({ input: agent.stdout })) {
    lines.push(line)
    if (/packet filter/.test(line)) agent.kill('SIGTERM')
  }
  assert.deepEqual(await ended, [0, null], lines.join('\n'))
  assert.match(lines.at(-1) ?? '', /everything stays/)
})
