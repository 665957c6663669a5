// Runs one case of the node agent: what it does about an event, with the executing side recorded.
import assert from 'node:assert/strict'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { createEnrollmentController, defaultEnablementSelectors, type Enrollment } from '../../src/cni/index.ts'

interface AgentInput {
  agentSettings: { exclude_namespaces: string[]; systemNamespace: string }
  cluster: { namespace?: Namespace; pod?: Pod }
  event:
    | { type: 'pod-add' | 'pod-update'; new: Pod }
    | { type: 'namespace-update'; new: Namespace }
    | { type: 'pod-delete' | 'restart' }
}

interface AgentExpected {
  actions: string[]
  isDelete?: boolean
  ipsFrom?: 'old'
}

export async function runAgentCase(given: unknown, wanted: unknown): Promise<void> {
  const [{ agentSettings, cluster, event }, expected] = [given as AgentInput, wanted as AgentExpected]
  const actions: string[] = []
  const unenrolled: { isDelete: boolean; ips: readonly string[] }[] = []
  const enrollment: Enrollment = {
    enroll: async () => void actions.push('enroll'),
    addToHostSet: async () => void actions.push('host-set-add'),
    unenroll: async (_pod, isDelete, ips) => {
      actions.push('unenroll')
      unenrolled.push({ isDelete, ips })
    },
    knows: () => false,
    restore: async (pods) => {
      for (const _pod of pods) actions.push('snapshot-add')
      if (pods.length > 0) actions.push('ipset-sync')
    },
  }
  await using controller = createEnrollmentController({
    settings: {
      selectors: defaultEnablementSelectors,
      excludeNamespaces: agentSettings.exclude_namespaces,
      systemNamespace: agentSettings.systemNamespace,
    },
    enrollment,
    log: () => undefined,
  })
  const { pod, namespace } = cluster
  await controller.start(pod === undefined ? [] : [pod], namespace === undefined ? [] : [namespace])
  await controller.idle()
  if (event.type !== 'restart') {
    // Only what the event brings about counts, not what the start did.
    actions.length = 0
    unenrolled.length = 0
  }
  switch (event.type) {
    case 'pod-add':
      controller.podAdded(event.new)
      break
    case 'pod-update':
      if (pod !== undefined) controller.podUpdated(pod, event.new)
      break
    case 'pod-delete':
      if (pod !== undefined) controller.podDeleted(pod)
      break
    case 'namespace-update':
      controller.namespaceChanged(event.new)
      break
  }
  await controller.idle()
  assert.deepEqual(actions, expected.actions)
  if (expected.isDelete !== undefined) assert.equal(unenrolled[0]?.isDelete, expected.isDelete)
  if (expected.ipsFrom === 'old')
    assert.deepEqual(
      unenrolled[0]?.ips,
      pod?.status?.podIPs?.map(({ ip }) => ip),
    )
}
