// Redirection of one node: rules in pods' network namespaces, rules and the address set in the node's own.
import { type AmbientSettings, hostProgram, podProgram } from './ambient.ts'
import { nftTables, probeSets } from './constants.ts'
import { mustRun, type RunTool, runTool } from './exec.ts'
import { applyIptables, detectIptables, type IptablesFlavour, removeIptables } from './iptables.ts'
import type { PodOverrides } from './overrides.ts'
import { createProbeSet, type ProbeSet } from './probe-set.ts'
import type { Backend, Program } from './program.ts'
import { nftInput, nftRemovalInput } from './render.ts'
import { addReplyRoutes, removeReplyRoutes } from './routes.ts'

export interface Redirector {
  readonly settings: AmbientSettings
  readonly probeSet: ProbeSet
  /** Captures a pod's traffic. May be called again for the same namespace: what is right stays untouched. */
  programPod(netns: string, overrides: PodOverrides): Promise<void>
  /** Ends the capture of a pod that keeps running. */
  unprogramPod(netns: string): Promise<void>
  programHost(kubeletUid: string | undefined): Promise<void>
  unprogramHost(): Promise<void>
}

/**
 * @param forced FORCE_IPTABLES_BINARY.
 * @param hostNetns file of the node's network namespace; undefined when it is the own one.
 * @param run how tools are run; tests pass their own.
 */
export function createRedirector(
  settings: AmbientSettings,
  forced?: string,
  hostNetns?: string,
  run: RunTool = runTool,
): Redirector {
  const onHost = runIn(run, hostNetns)
  let detected: Promise<IptablesFlavour> | undefined
  const flavour = (netns?: string): Promise<IptablesFlavour> => {
    // Which tools work depends on the kernel, not on the namespace: found once a node; a failure is tried again.
    detected ??= detectIptables(run, netns, forced).catch((error: unknown) => {
      detected = undefined
      throw error
    })
    return detected
  }
  const apply = async (program: Program, netns?: string): Promise<void> => {
    if (program.backend === 'iptables') await applyIptables(run, await flavour(netns), program, netns)
    else {
      const where = netns === undefined ? {} : { netns }
      await mustRun(run, 'nft', ['-f', '-'], { ...where, input: nftInput(program) })
    }
  }
  const probeSet = createProbeSet(onHost, settings.backend, settings.enableIpv6)
  return {
    settings,
    probeSet,
    programPod: async (netns, overrides) => {
      await addReplyRoutes(run, settings.enableIpv6, netns)
      await apply(podProgram(settings, overrides), netns)
    },
    unprogramPod: async (netns) => {
      if (settings.backend === 'iptables') await removeIptables(run, await flavour(netns), netns)
      else await mustRun(run, 'nft', ['-f', '-'], { netns, input: nftRemovalInput(Object.values(nftTables)) })
      await removeReplyRoutes(run, netns)
    },
    programHost: async (kubeletUid) => {
      await probeSet.create()
      await apply(hostProgram(settings, kubeletUid), hostNetns)
    },
    unprogramHost: async () => {
      if (settings.backend === 'iptables') {
        await removeIptables(run, await flavour(hostNetns), hostNetns)
        await probeSet.destroy()
      } else {
        await mustRun(onHost, 'nft', ['-f', '-'], { input: nftRemovalInput([nftTables.nat]) })
      }
    },
  }
}

function runIn(run: RunTool, netns: string | undefined): RunTool {
  return netns === undefined ? run : (command, args, options) => run(command, args, { netns, ...options })
}

/**
 * The backend for this node. nftables has to be asked for (NATIVE_NFTABLES), and is not used while sets of the other backend live, as
 * both would translate addresses.
 */
export async function selectBackend(
  nativeNftables: boolean,
  hostNetns?: string,
  run: RunTool = runTool,
): Promise<{ backend: Backend; reason: string }> {
  const onHost = runIn(run, hostNetns)
  if (!nativeNftables) return { backend: 'iptables', reason: 'NATIVE_NFTABLES is not true' }
  for (const set of Object.values(probeSets)) {
    const { code } = await onHost('ipset', ['list', '-name', set])
    if (code === 0)
      return { backend: 'iptables', reason: `the ipset ${set} of the iptables backend exists until the node restarts` }
  }
  const tables = await onHost('nft', ['--json', 'list', 'tables'])
  if (tables.code !== 0 && /json support/i.test(tables.stderr)) {
    return { backend: 'iptables', reason: 'nft is built without JSON support' }
  }
  return { backend: 'nftables', reason: 'NATIVE_NFTABLES is true' }
}
