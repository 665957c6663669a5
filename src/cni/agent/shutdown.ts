// Whether a stopping agent takes the plugin and the rules with it: on uninstall, not on an upgrade or a restart of the node.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DaemonSet } from 'kubernetes-types/apps/v1.js'
import { type KubeObject, podSelectsNode, resources } from '../../api/index.ts'
import { isKubeError, type KubeClient } from '../../kube/index.ts'
import type { AgentSettings } from '../settings.ts'

export interface CleanUpDecision {
  readonly cleanUp: boolean
  readonly reason: string
}

const daemonSet = 'istio-cni-node'
const retries = 2

/** Asks the API what is to become of this agent. Never rejects: without an answer everything stays. */
export async function shouldCleanUp(
  client: KubeClient,
  settings: AgentSettings,
  retryMs = 1000,
): Promise<CleanUpDecision> {
  if (!settings.ambientEnabled) return { cleanUp: true, reason: 'ambient mode is off' }
  if (settings.disableSafeUpgrade) return { cleanUp: true, reason: 'AMBIENT_DISABLE_SAFE_UPGRADE is true' }
  for (let attempt = 0; ; attempt += 1) {
    try {
      const found = await client.get<KubeObject>(resources.daemonSets, {
        namespace: settings.podNamespace,
        name: daemonSet,
      })
      if (found === undefined) return { cleanUp: true, reason: `DaemonSet ${daemonSet} is gone` }
      const { metadata, spec } = found as DaemonSet
      if (metadata?.deletionTimestamp !== undefined)
        return { cleanUp: true, reason: `DaemonSet ${daemonSet} is being deleted` }
      // Not being told of the node is no reason to go.
      const node = await client.get<KubeObject>(resources.nodes, { name: settings.nodeName }).catch(() => undefined)
      if (node !== undefined && !podSelectsNode(spec?.template.spec, node))
        return { cleanUp: true, reason: `DaemonSet ${daemonSet} does not run on this node any more` }
      return { cleanUp: false, reason: `DaemonSet ${daemonSet} is there: this is a restart or an upgrade` }
    } catch (error) {
      // A server that has only just started refuses what it cannot judge yet: that passes.
      const isRefused = isKubeError(error) && (error.code === 401 || error.code === 403)
      if (isRefused && attempt === retries && (await judges(client, error.code))) {
        return { cleanUp: true, reason: `the agent's rights were removed (${error.code})` }
      }
      // An API that is out of reach says nothing about being uninstalled.
      if (attempt === retries) return { cleanUp: false, reason: `the API can't be asked: ${(error as Error).message}` }
      await sleep(retryMs)
    }
  }
}

/**
 * Whether a refusal tells of our rights. The version of the server may be read by everyone it knows (role system:public-info-viewer): refused
 * that, too, nobody has rights yet. Who is not known (401) has no account any more.
 */
async function judges(client: KubeClient, code: number): Promise<boolean> {
  if (code === 401) return true
  try {
    return (await client.request('/version')).ok
  } catch {
    return false
  }
}
