// Calls the CNI plugins of a network configuration directory: the protocol of a container runtime.
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { tryRun } from '../run.ts'

/** A network configuration list. */
export interface CniNetwork {
  readonly name: string
  readonly cniVersion: string
  readonly plugins: readonly CniPlugin[]
  readonly disableCheck: boolean
}

export interface CniPlugin {
  readonly type: string
  readonly [key: string]: unknown
}

export interface CniResult {
  readonly cniVersion?: string
  readonly ips?: readonly { readonly address: string; readonly gateway?: string; readonly interface?: number }[]
  readonly [key: string]: unknown
}

export interface CniCall {
  readonly containerId: string
  readonly networkNamespace: string
  readonly interfaceName: string
  readonly args: Readonly<Record<string, string>>
  /** Directories that hold the plugins. */
  readonly path: readonly string[]
}

/** A plugin that answered with an error, or a configuration that cannot be used. */
export class CniError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** The network of the first usable configuration file in name order; undefined when there is none (yet). */
export async function loadNetwork(directory: string): Promise<CniNetwork | undefined> {
  const names = existsSync(directory) ? await readdir(directory) : []
  for (const name of names.filter((name) => /\.(conf|conflist|json)$/.test(name)).sort()) {
    const network = parseNetwork(await readFile(join(directory, name), 'utf8'))
    if (network !== undefined) return network
  }
  return undefined
}

/** A configuration list, or a single plugin's configuration as a list of one. */
export function parseNetwork(text: string): CniNetwork | undefined {
  let parsed: Record<string, unknown>
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  const { name, cniVersion = '0.1.0', type, plugins, disableCheck = false } = parsed
  if (typeof name !== 'string' || typeof cniVersion !== 'string') return undefined
  const list = Array.isArray(plugins) ? plugins : typeof type === 'string' ? [parsed] : []
  if (list.length === 0 || !list.every((plugin) => typeof plugin?.type === 'string')) return undefined
  return { name, cniVersion, plugins: list, disableCheck: disableCheck === true }
}

/** Attaches the namespace: every plugin in order, each with the result of the one before. */
export async function cniAdd(network: CniNetwork, call: CniCall): Promise<CniResult> {
  let result: CniResult | undefined
  for (const plugin of network.plugins) {
    result = JSON.parse(await invoke('ADD', network, plugin, call, result)) as CniResult
  }
  return result ?? {}
}

export async function cniCheck(network: CniNetwork, call: CniCall, result: CniResult): Promise<void> {
  if (network.disableCheck) return
  for (const plugin of network.plugins) await invoke('CHECK', network, plugin, call, result)
}

/** Detaches: every plugin in reverse order, with the result of ADD where it is known. Goes on after an error and throws the first at the end. */
export async function cniDelete(network: CniNetwork, call: CniCall, result: CniResult | undefined): Promise<void> {
  const failures: unknown[] = []
  for (const plugin of [...network.plugins].reverse()) {
    try {
      await invoke('DEL', network, plugin, call, result)
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

async function invoke(
  command: 'ADD' | 'DEL' | 'CHECK',
  network: CniNetwork,
  plugin: CniPlugin,
  call: CniCall,
  previous: CniResult | undefined,
): Promise<string> {
  const binary = call.path.map((directory) => join(directory, plugin.type)).find((path) => existsSync(path))
  if (binary === undefined) {
    throw new CniError(50, `failed to find plugin "${plugin.type}" in path [${call.path.join(' ')}]`)
  }
  const config = {
    ...plugin,
    name: network.name,
    cniVersion: network.cniVersion,
    ...(previous === undefined ? {} : { prevResult: previous }),
  }
  const { code, stdout, stderr } = await tryRun([binary], {
    input: JSON.stringify(config),
    timeoutMs: 90_000,
    env: {
      PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin',
      CNI_COMMAND: command,
      CNI_CONTAINERID: call.containerId,
      CNI_NETNS: call.networkNamespace,
      CNI_IFNAME: call.interfaceName,
      CNI_ARGS: Object.entries(call.args)
        .map(([key, value]) => `${key}=${value}`)
        .join(';'),
      CNI_PATH: call.path.join(delimiter),
    },
  })
  if (code === 0) return stdout === '' ? '{}' : stdout
  throw pluginError(plugin.type, stdout, stderr, code)
}

function pluginError(type: string, stdout: string, stderr: string, exitCode: number): CniError {
  try {
    const { code, msg, details } = JSON.parse(stdout) as { code?: number; msg?: string; details?: string }
    return new CniError(code ?? 999, `plugin type="${type}" failed: ${msg ?? ''}${details ? `; ${details}` : ''}`)
  } catch {
    const text = (stdout + stderr).trim()
    return new CniError(999, `plugin type="${type}" failed with code ${exitCode}: ${text}`)
  }
}
