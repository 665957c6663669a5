// Installs the CNI plugin on the node and keeps it installed: the executable, its kubeconfig, its entry in the network configuration.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { AgentSettings } from '../settings.ts'
import { watchFolders } from './folder-watch.ts'
import {
  holdsEntry,
  insertPlugin,
  isValidNetworkConfig,
  pluginEntry,
  pluginType,
  removePlugin,
} from './network-config.ts'

export interface InstallerOptions {
  readonly settings: AgentSettings
  /** What the plugin's executable runs: the program and its first words. */
  readonly command: readonly string[]
  /** The agent's service account: `token`, `ca.crt`. */
  readonly serviceAccountDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void
  /** Called after each pass. */
  readonly onPass: (
    result: 'SUCCESS' | 'COPY_BINARIES_FAILURE' | 'CREATE_KUBECONFIG_FAILURE' | 'CREATE_CNI_CONFIG_FAILURE',
  ) => void
}

export interface Installer extends AsyncDisposable {
  /** The plugin is in place. */
  readonly ready: boolean
  uninstall(): void
}

type Result = Parameters<InstallerOptions['onPass']>[0]

/** Events come in bursts; one pass serves them all. */
const settleMs = 100
/** After a pass that failed, or while a folder can't be watched: nothing else brings about the next one. */
const retryMs = 5_000

/** Installs, then watches the folders and repairs. A pass that fails is told and repeated. */
export function startInstaller(options: InstallerOptions): Installer {
  const { settings, log } = options
  let ready = false
  let timer: NodeJS.Timeout | undefined
  const folders = watchFolders(
    [settings.mountedCniNetDir, settings.mountedCniBinDir, options.serviceAccountDir],
    () => schedule(settleMs),
    log,
  )
  const pass = (): void => {
    clearTimeout(timer)
    timer = undefined
    ready = false
    if (!folders.refresh()) schedule(retryMs)
    const failed = (result: Result, error: unknown): void => {
      options.onPass(result)
      log('error', `the CNI plugin is not installed: ${(error as Error).message}`)
      schedule(retryMs)
    }
    for (const [result, step] of [
      ['COPY_BINARIES_FAILURE', () => writeExecutable(options)],
      ['CREATE_KUBECONFIG_FAILURE', () => writeKubeconfig(options)],
    ] as const) {
      try {
        step()
      } catch (error) {
        failed(result, error)
        return
      }
    }
    try {
      ready = writeNetworkConfig(options)
    } catch (error) {
      failed('CREATE_CNI_CONFIG_FAILURE', error)
      return
    }
    if (ready) options.onPass('SUCCESS')
  }
  let dueAt = 0
  /** At the earlier of this and what is planned: events that never end must not put a pass off. */
  function schedule(delayMs: number): void {
    const at = performance.now() + delayMs
    if (timer !== undefined && dueAt <= at) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(pass, delayMs)
  }
  mkdirSync(settings.mountedCniNetDir, { recursive: true })
  pass()
  // By now the folders that the first pass made are there to be watched.
  schedule(settleMs)
  return {
    get ready() {
      return ready
    },
    uninstall: () => uninstall(options),
    [Symbol.asyncDispose]: async () => {
      clearTimeout(timer)
      folders[Symbol.dispose]()
    },
  }
}

/** Writes beside the file and renames; leaves the file alone when it holds the text already. */
function writeAtomically(path: string, text: string, mode: number): void {
  if (existsSync(path) && readFileSync(path, 'utf8') === text && (statSync(path).mode & 0o777) === mode) return
  const temporary = `${path}.tmp.${process.pid}`
  writeFileSync(temporary, text, { mode })
  renameSync(temporary, path)
}

function shellWord(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

function writeExecutable({ settings, command }: InstallerOptions): void {
  const dir = settings.mountedCniBinDir
  mkdirSync(dir, { recursive: true })
  for (const name of readdirSync(dir)) {
    if (name.startsWith(`${pluginType}.tmp.`)) rmSync(join(dir, name), { force: true })
  }
  writeAtomically(join(dir, pluginType), `#!/bin/sh\nexec ${command.map(shellWord).join(' ')} "$@"\n`, 0o755)
}

function writeKubeconfig({ settings, serviceAccountDir, env }: InstallerOptions): void {
  const host = env.KUBERNETES_SERVICE_HOST
  const port = env.KUBERNETES_SERVICE_PORT
  if (!host) throw new Error('KUBERNETES_SERVICE_HOST not set. Is this not running within a pod?')
  if (!port) throw new Error('KUBERNETES_SERVICE_PORT not set. Is this not running within a pod?')
  const protocol = env.KUBERNETES_SERVICE_PROTOCOL ?? 'https'
  const server = `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`
  const ca = (): string => readFileSync(settings.kubeCaFile || join(serviceAccountDir, 'ca.crt')).toString('base64')
  const trust = settings.skipTlsVerify ? { 'insecure-skip-tls-verify': true } : { 'certificate-authority-data': ca() }
  const token = readFileSync(join(serviceAccountDir, 'token'), 'utf8').trim()
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, ...trust } }],
    users: [{ name: 'istio-cni', user: { token } }],
    contexts: [{ name: 'istio-cni-context', context: { cluster: 'local', user: 'istio-cni' } }],
    'current-context': 'istio-cni-context',
  }
  mkdirSync(settings.agentRunDir, { recursive: true })
  writeAtomically(join(settings.agentRunDir, 'istio-cni-kubeconfig'), stringify(kubeconfig), settings.kubeconfigMode)
}

function networkConfigs(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => /\.(conf|conflist)$/.test(name))
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** The file of the network that pods get without us; undefined when there is none yet. */
function primaryConfig({ mountedCniNetDir: dir, cniConfName, ...settings }: AgentSettings): string | undefined {
  if (cniConfName !== '') {
    const swapped = cniConfName.endsWith('.conf') ? `${cniConfName}list` : cniConfName.replace(/\.conflist$/, '.conf')
    return [cniConfName, swapped].find((name) => existsSync(join(dir, name)))
  }
  return networkConfigs(dir).find(
    (name) =>
      !(settings.ownedCniConfig && name === settings.ownedCniConfigFilename) &&
      isValidNetworkConfig(name, readFileSync(join(dir, name), 'utf8')),
  )
}

/** Returns whether the plugin is in force. */
function writeNetworkConfig({ settings, log }: InstallerOptions): boolean {
  const { mountedCniNetDir: dir } = settings
  const entry = pluginEntry(settings)
  const fresh = settings.confGroupRead ? 0o640 : 0o600
  if (!settings.chainedCniPlugin) {
    const name = settings.cniConfName || 'YYY-istio-cni.conf'
    writeAtomically(join(dir, name), `${JSON.stringify(entry, undefined, 2)}\n`, fresh)
    return true
  }
  const primary = primaryConfig(settings)
  if (primary === undefined) {
    log('info', `waiting for a network configuration in ${dir}`)
    return false
  }
  const path = join(dir, primary)
  const text = readFileSync(path, 'utf8')
  if (settings.ownedCniConfig && settings.ambientEnabled) {
    const own = settings.ownedCniConfigFilename
    writeAtomically(join(dir, own), insertPlugin(text, primary, entry), fresh)
    if (networkConfigs(dir)[0] !== own)
      log('warn', `${own} is not the first file in ${dir}: pods may start outside the mesh`)
    return true
  }
  if (holdsEntry(text, primary, entry)) return true
  const target = primary.endsWith('.conf') ? `${primary}list` : primary
  writeAtomically(join(dir, target), insertPlugin(text, primary, entry), statSync(path).mode & 0o777)
  if (target !== primary) rmSync(path)
  log('info', `the CNI plugin is in ${join(dir, target)}`)
  return true
}

function uninstall({ settings, log }: InstallerOptions): void {
  const { mountedCniNetDir: dir } = settings
  const owned = settings.ownedCniConfig && settings.ambientEnabled
  if (!settings.chainedCniPlugin) rmSync(join(dir, settings.cniConfName || 'YYY-istio-cni.conf'), { force: true })
  else if (owned) rmSync(join(dir, settings.ownedCniConfigFilename), { force: true })
  else {
    for (const name of existsSync(dir) ? networkConfigs(dir) : []) {
      const path = join(dir, name)
      try {
        const without = removePlugin(readFileSync(path, 'utf8'), name)
        if (without !== undefined) writeAtomically(path, without, statSync(path).mode & 0o777)
      } catch (error) {
        log('warn', (error as Error).message)
      }
    }
  }
  rmSync(join(settings.agentRunDir, 'istio-cni-kubeconfig'), { force: true })
  rmSync(join(settings.mountedCniBinDir, pluginType), { force: true })
}
