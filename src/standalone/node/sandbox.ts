// A pod's sandbox: its network namespace, attached by CNI, and a process that stays in it from the first moment to the last.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, writeFileAtomic } from '../files.ts'
import { run, tryRun } from '../run.ts'
import { CniError, type CniNetwork, type CniResult, cniAdd, cniDelete, loadNetwork } from './cni.ts'
import type { Pod } from './types.ts'

export interface SandboxSettings {
  readonly cniConfigDirectory: string
  readonly cniPath: readonly string[]
  /** Begins the name of every namespace of this instance. */
  readonly namespacePrefix: string
}

export interface Sandbox {
  readonly id: string
  readonly namespace: string
  readonly namespacePath: string
  readonly ips: readonly string[]
  readonly network: CniNetwork
  readonly result: CniResult
  readonly args: Readonly<Record<string, string>>
}

/** Name of the pod's network namespace, readable in `ip netns list`. */
export function sandboxNamespace(prefix: string, pod: Pod): string {
  const { namespace, name, uid = '' } = pod.metadata
  return `${`${prefix}-${namespace}-${name}`.slice(0, 200)}-${uid}`
}

/** Creates the namespace and attaches it; leaves nothing behind when that fails. The sandbox is recorded in `directory`. */
export async function createSandbox(pod: Pod, directory: string, settings: SandboxSettings): Promise<Sandbox> {
  const network = await loadNetwork(settings.cniConfigDirectory)
  if (network === undefined) {
    throw new CniError(50, `no network configuration in ${settings.cniConfigDirectory}`)
  }
  const namespace = sandboxNamespace(settings.namespacePrefix, pod)
  const id = pod.metadata.uid ?? namespace
  const args = {
    IgnoreUnknown: '1',
    K8S_POD_NAMESPACE: pod.metadata.namespace ?? '',
    K8S_POD_NAME: pod.metadata.name,
    K8S_POD_INFRA_CONTAINER_ID: id,
    K8S_POD_UID: pod.metadata.uid ?? '',
  }
  const sandbox: Sandbox = {
    id,
    namespace,
    namespacePath: `/var/run/netns/${namespace}`,
    ips: [],
    network,
    result: {},
    args,
  }
  const file = join(directory, 'sandbox.json')
  await writeFileAtomic(file, JSON.stringify(sandbox))
  try {
    if (!existsSync(sandbox.namespacePath)) await run(['ip', 'netns', 'add', namespace])
    await run(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
    const result = await cniAdd(network, cniCall(sandbox, settings))
    const ips = (result.ips ?? []).map((ip) => ip.address.split('/')[0] ?? '')
    if (ips.length === 0) throw new CniError(999, `network ${network.name} gave the pod no address`)
    const attached = { ...sandbox, result, ips }
    await writeFileAtomic(file, JSON.stringify(attached))
    return attached
  } catch (error) {
    await removeSandbox(sandbox, settings)
    throw error
  }
}

/** The sandbox recorded in `directory`, if its namespace still exists. */
export async function loadSandbox(directory: string): Promise<Sandbox | undefined> {
  return readJson<Sandbox>(join(directory, 'sandbox.json'))
}

export function sandboxIsAttached(sandbox: Sandbox): boolean {
  return sandbox.ips.length > 0 && existsSync(sandbox.namespacePath)
}

/** Detaches and deletes the namespace. Does nothing for what is already gone; plugin failures are returned, not thrown. */
export async function removeSandbox(sandbox: Sandbox, settings: SandboxSettings): Promise<Error | undefined> {
  let failure: Error | undefined
  try {
    const result = sandbox.ips.length === 0 ? undefined : sandbox.result
    await cniDelete(sandbox.network, cniCall(sandbox, settings), result)
  } catch (error) {
    failure = error as Error
  }
  if (existsSync(sandbox.namespacePath)) await tryRun(['ip', 'netns', 'delete', sandbox.namespace])
  return failure
}

function cniCall(sandbox: Sandbox, settings: SandboxSettings) {
  return {
    containerId: sandbox.id,
    networkNamespace: sandbox.namespacePath,
    interfaceName: 'eth0',
    args: sandbox.args,
    path: settings.cniPath,
  }
}
