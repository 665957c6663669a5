// What whoever takes a node over can do with its credentials: what concerns the pods of that node, and nothing else.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type MeshInstance, needsRoot, startMeshInstance, temporaryDirectory } from '../support/mesh-instance.ts'

const isThere = spawnSync('kubectl', ['version', '--client']).status === 0
const skip = needsRoot || (isThere ? false : 'there is no kubectl')

const pods = ['node-1', 'node-2']
  .map(
    (node) => `
apiVersion: v1
kind: Secret
metadata: {name: of-${node}}
stringData: {word: from-${node}}
---
apiVersion: v1
kind: Pod
metadata: {name: on-${node}}
spec:
  nodeName: ${node}
  containers:
  - name: app
    image: host
    command: [sh, -c, 'cat /etc/word/word; sleep 1000']
    volumeMounts: [{name: word, mountPath: /etc/word}]
  volumes: [{name: word, secret: {secretName: of-${node}}}]
`,
  )
  .join('\n---\n')

describe('the credentials of a node', { skip, timeout: 180_000 }, () => {
  let instance: MeshInstance
  // Where kubectl keeps what it knows of servers.
  const home = temporaryDirectory()

  /** kubectl with the credentials of `nodes/node-1` and the like. */
  async function kubectlAs(part: string, ...words: string[]): Promise<{ code: number; output: string }> {
    const kubeconfig = join(instance.stateDir, part)
    const child = spawn('kubectl', ['--kubeconfig', kubeconfig, '-n', 'default', ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, HOME: home },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    const [code] = (await once(child, 'close')) as [number | null]
    return { code: code ?? 137, output }
  }
  const asNode = (...words: string[]) => kubectlAs('nodes/node-1/kubeconfig', ...words)

  before(async () => {
    instance = await startMeshInstance('--no-mesh')
    await instance.apply(pods)
    await Promise.all(['on-node-1', 'on-node-2'].map((name) => instance.pod(name)))
  })
  after(async () => {
    rmSync(home, { recursive: true })
    await instance?.[Symbol.asyncDispose]()
  })

  test('are those of the node', async () => {
    const { code, output } = await asNode('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')
    assert.equal(code, 0, output)
    assert.equal(output, 'system:node:node-1')
  })

  for (const [words, isAllowed] of [
    [['get', 'secret', 'of-node-1'], true],
    [['get', 'secret', 'of-node-2'], false],
    [['get', 'secrets'], false],
    [['get', 'pod', 'on-node-1'], true],
    [['get', 'pod', 'on-node-2'], false],
    [['get', 'pods'], false],
    [['get', 'node', 'node-1'], true],
    [['get', 'node', 'node-2'], false],
    [['get', 'deployments'], false],
    [['delete', 'pod', 'on-node-2'], false],
    [['delete', 'node', 'node-1'], false],
    [['label', 'node', 'node-1', 'node-restriction.kubernetes.io/tier=a'], false],
    [['create', 'token', 'default'], false],
    [['create', 'secret', 'generic', 'planted'], false],
    [['logs', 'on-node-2'], false],
  ] as const) {
    test(`${isAllowed ? 'allow' : 'refuse'}: kubectl ${words.join(' ')}`, async () => {
      const { code, output } = await asNode(...words)
      if (isAllowed) assert.equal(code, 0, output)
      else {
        assert.notEqual(code, 0, output)
        assert.match(output, /[Ff]orbidden/)
      }
    })
  }

  test('kubectl auth can-i says the same, to the node and to the administrator who asks for it', async () => {
    for (const [words, expected] of [
      [['get', 'secret/of-node-1'], /^yes/m],
      [['get', 'secret/of-node-2'], /^no/m],
      [['list', 'secrets'], /^no/m],
      [['get', 'pod/on-node-1'], /^yes/m],
      [['get', 'pod/on-node-2'], /^no/m],
      [['create', 'deployments'], /^no/m],
    ] as const) {
      const asked = await asNode('auth', 'can-i', ...words)
      assert.match(asked.output, expected, words.join(' '))
      const asUser = ['--as', 'system:node:node-1', '--as-group', 'system:nodes', '-n', 'default']
      const told = await instance.kubectl('auth', 'can-i', ...words, ...asUser)
      assert.match(told.output, expected, words.join(' '))
    }
  })

  test('the controllers and the scheduler read no Secrets either', async () => {
    for (const part of ['controllers', 'scheduler']) {
      const { code, output } = await kubectlAs(`credentials/${part}`, 'get', 'secrets')
      assert.notEqual(code, 0)
      assert.match(output, /Forbidden/)
    }
  })
})
