import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { agentSettings } from '../settings.ts'
import { startInstaller } from './installer.ts'

const bridge = { cniVersion: '1.0.0', name: 'pods', plugins: [{ type: 'bridge', bridge: 'cni0' }] }

function node(t: TestContext, files: Record<string, unknown> = { '10-pods.conflist': bridge }) {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-install-'))
  t.after(() => rmSync(dir, { recursive: true }))
  for (const sub of ['net.d', 'bin', 'sa']) mkdirSync(join(dir, sub))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, 'net.d', name), JSON.stringify(content))
  writeFileSync(join(dir, 'sa/token'), 'secret-token\n')
  writeFileSync(join(dir, 'sa/ca.crt'), 'CERTIFICATE')
  const env = {
    NODE_NAME: 'n1',
    AMBIENT_ENABLED: 'true',
    MOUNTED_CNI_NET_DIR: join(dir, 'net.d'),
    MOUNTED_CNI_BIN_DIR: join(dir, 'bin'),
    CNI_AGENT_RUN_DIR: join(dir, 'run'),
    KUBERNETES_SERVICE_HOST: 'fd00::1',
    KUBERNETES_SERVICE_PORT: '443',
  }
  const passes: string[] = []
  const waiting: (() => void)[] = []
  const install = (more: Record<string, string> = {}) => {
    const installer = startInstaller({
      settings: agentSettings({ ...env, ...more }),
      command: ['/usr/bin/node', "/opt/it's/lateen.js", 'cni'],
      serviceAccountDir: join(dir, 'sa'),
      env: { ...env, ...more },
      log: () => undefined,
      onPass: (result) => {
        passes.push(result)
        for (const resolve of waiting.splice(0)) resolve()
      },
    })
    t.after(() => installer[Symbol.asyncDispose]())
    return installer
  }
  const list = (name = '10-pods.conflist') => JSON.parse(readFileSync(join(dir, 'net.d', name), 'utf8'))
  const nextPass = (): Promise<void> => new Promise((resolve) => waiting.push(resolve))
  return { dir, install, list, passes, nextPass }
}

const types = (config: { plugins: { type: string }[] }): string[] => config.plugins.map(({ type }) => type)

test('the plugin is put at the end of the list, with its executable and kubeconfig', (t) => {
  const { dir, install, list } = node(t)
  assert.equal(install().ready, true)
  assert.deepEqual(types(list()), ['bridge', 'istio-cni'])
  assert.equal(list().name, 'pods')
  const executable = readFileSync(join(dir, 'bin/istio-cni'), 'utf8')
  assert.equal(executable, `#!/bin/sh\nexec '/usr/bin/node' '/opt/it'\\''s/lateen.js' 'cni' "$@"\n`)
  const kubeconfig = join(dir, 'run/istio-cni-kubeconfig')
  assert.equal(statSync(kubeconfig).mode & 0o777, 0o600)
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8'))
  assert.equal(clusters[0].cluster.server, 'https://[fd00::1]:443')
  assert.equal(users[0].user.token, 'secret-token')
})

test('an entry that another component removed comes back', async (t) => {
  const { dir, install, list, nextPass } = node(t)
  install()
  await nextPass()
  writeFileSync(join(dir, 'net.d/10-pods.conflist'), JSON.stringify(bridge))
  while (!types(list()).includes('istio-cni')) await nextPass()
  assert.deepEqual(types(list()), ['bridge', 'istio-cni'])
})

/** Writes a service account volume as a kubelet does: a folder for each version, and a link that is renamed over the last one. */
function writeVolume(dir: string, version: string): void {
  const folder = join(dir, `..${version}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'token'), `token-${version}`)
  writeFileSync(join(folder, 'ca.crt'), `CA ${version}`)
  symlinkSync(`..${version}`, join(dir, '..data_tmp'))
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  for (const name of ['token', 'ca.crt']) {
    rmSync(join(dir, name), { force: true })
    symlinkSync(join('..data', name), join(dir, name))
  }
}

function credentials(dir: string): { token: string; ca: string } {
  const { clusters, users } = parse(readFileSync(join(dir, 'run/istio-cni-kubeconfig'), 'utf8'))
  const ca = Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  return { token: users[0].user.token, ca }
}

test('the kubeconfig follows the token and the authority of the agent’s service account', async (t) => {
  const { dir, install, nextPass } = node(t)
  writeVolume(join(dir, 'sa'), '1')
  install()
  await nextPass()
  assert.deepEqual(credentials(dir), { token: 'token-1', ca: 'CA 1' })
  for (const version of ['2', '3']) {
    writeVolume(join(dir, 'sa'), version)
    while (credentials(dir).token !== `token-${version}`) await nextPass()
    assert.deepEqual(credentials(dir), { token: `token-${version}`, ca: `CA ${version}` })
  }
})

test('a network folder that is replaced is followed like the first one', async (t) => {
  const { dir, install, list, nextPass } = node(t)
  const installer = install()
  await nextPass()
  for (const round of ['first', 'second']) {
    rmSync(join(dir, 'net.d'), { recursive: true })
    mkdirSync(join(dir, 'net.d'))
    writeFileSync(join(dir, 'net.d/10-pods.conflist'), JSON.stringify({ ...bridge, name: round }))
    do await nextPass()
    while (!installer.ready || !existsSync(join(dir, 'net.d/10-pods.conflist')))
    assert.deepEqual(types(list()), ['bridge', 'istio-cni'])
  }
  writeFileSync(join(dir, 'net.d/10-pods.conflist'), JSON.stringify(bridge))
  while (!types(list()).includes('istio-cni')) await nextPass()
})

test('a node without a network waits for one', async (t) => {
  const { dir, install, list, nextPass } = node(t, {})
  const installer = install()
  assert.equal(installer.ready, false)
  writeFileSync(join(dir, 'net.d/10-pods.conflist'), JSON.stringify(bridge))
  while (!installer.ready) await nextPass()
  assert.deepEqual(types(list()), ['bridge', 'istio-cni'])
})

test('a single plugin becomes a list in a file of the right name', (t) => {
  const { dir, install, list } = node(t, { '05-one.conf': { cniVersion: '0.3.1', type: 'ptp' } })
  install()
  assert.equal(existsSync(join(dir, 'net.d/05-one.conf')), false)
  assert.deepEqual(types(list('05-one.conflist')), ['ptp', 'istio-cni'])
})

test('uninstalling leaves the network as it was', (t) => {
  const { dir, install, list } = node(t)
  install().uninstall()
  assert.deepEqual(types(list()), ['bridge'])
  assert.equal(existsSync(join(dir, 'bin/istio-cni')), false)
  assert.equal(existsSync(join(dir, 'run/istio-cni-kubeconfig')), false)
})

test('outside a pod the installer says what is missing', (t) => {
  const { install, passes } = node(t)
  assert.equal(install({ KUBERNETES_SERVICE_HOST: '' }).ready, false)
  assert.deepEqual(passes, ['CREATE_KUBECONFIG_FAILURE'])
})
