// Runs one plugin case: the decision and what it sends, without a network or a cluster.
import assert from 'node:assert/strict'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import {
  type AddEvent,
  addPod,
  CniError,
  parseCniArgs,
  parsePluginConfig,
  resultOf,
  runPlugin,
} from '../../src/cni/index.ts'

interface PluginInput {
  stdin: Record<string, unknown>
  netns: string
  cniArgs: Record<string, string>
  pod: Pod | null
  namespace: Namespace | null
  apiServer?: { pods?: string; namespaces?: string; kubeconfig?: string }
  agent?: { status: number; body?: string; absent?: boolean }
}

interface PluginExpected {
  decision: string
  request?: { Netns: string; PodName: string; PodNamespace: string; ipCount: number }
  result?: 'prevResult' | 'empty'
  error?: string
  errorContains?: string[]
  attempts?: number
  agentCalled?: boolean
}

/** How many requests of this kind fail, of `500 always`, `500 once`, `500 twice`. */
function faults(text: string | undefined): number {
  return text === undefined
    ? 0
    : ({ always: Number.POSITIVE_INFINITY, once: 1, twice: 2 }[text.split(' ')[1] ?? ''] ?? 0)
}

export async function runPluginCase(given: unknown, wanted: unknown): Promise<void> {
  const [input, expected] = [given as PluginInput, wanted as PluginExpected]
  const stdin = JSON.stringify(input.stdin)
  const config = parsePluginConfig(stdin)
  const cniArgs = Object.entries(input.cniArgs).map(([key, value]) => `${key}=${value}`)
  let [podFaults, namespaceFaults, attempts] = [faults(input.apiServer?.pods), faults(input.apiServer?.namespaces), 0]
  let attemptsToDecide: number | undefined
  const sent: AddEvent[] = []
  const answer = async <T>(object: T | null): Promise<T> => {
    if (object === null) throw new Error('not found')
    return object
  }
  const attempt = addPod(
    { config, pod: parseCniArgs(cniArgs.join(';')), netns: input.netns },
    {
      connect: async () => {
        if (input.apiServer?.kubeconfig === 'missing') throw new Error('no kubeconfig')
        return {
          pod: async () => {
            attempts += 1
            if (podFaults-- > 0) throw new Error('500')
            return answer(input.pod)
          },
          namespace: async () => {
            if (namespaceFaults-- > 0) throw new Error('500')
            return answer(input.namespace)
          },
        }
      },
      notifyAgent: async (event) => {
        sent.push(event)
        const failed = 'istio-cni cmdAdd failed to contact node Istio CNI agent: '
        if (input.agent === undefined || input.agent.absent === true)
          throw new CniError(`${failed}failed to send event request: ENOENT`)
        const { status, body = '' } = input.agent
        if (status !== 200) throw new CniError(`${failed}unable to push CNI event (status code ${status}): ${body}`)
      },
      sleep: async () => undefined,
      // A warning ends the deciding phase: the pod is taken for one that is not ambient.
      log: (level) => {
        if (level === 'warn') attemptsToDecide ??= attempts
      },
    },
  )
  const outcome = await attempt.then(
    (decision) => ({ decision, error: undefined }),
    (error: Error) => ({ decision: sent.length > 0 ? 'ambient' : 'error', error: error.message }),
  )
  assert.equal(outcome.decision, expected.decision)
  if (expected.error !== undefined) assert.equal(outcome.error, expected.error)
  for (const part of expected.errorContains ?? [])
    assert.ok(outcome.error?.includes(part), `${outcome.error} has no ${part}`)
  if (expected.agentCalled !== undefined) {
    assert.equal(sent.length > 0 && input.agent?.absent !== true, expected.agentCalled)
  }
  if (expected.attempts !== undefined) assert.equal(attemptsToDecide ?? attempts, expected.attempts)
  if (expected.request !== undefined) {
    // The UID is an addition of ours, which other agents do not read.
    const { IPs, PodUID: _uid, ...rest } = sent[0] ?? { IPs: null }
    assert.deepEqual({ ...rest, ipCount: IPs?.length ?? 0 }, expected.request)
  }
  if (expected.result === 'prevResult') assert.deepEqual(resultOf(config), input.stdin.prevResult)
  if (expected.result === 'empty') assert.deepEqual(resultOf(config), { cniVersion: config.cniVersion, dns: {} })
  for (const CNI_COMMAND of ['DEL', 'CHECK']) {
    assert.deepEqual(await runPlugin({ CNI_COMMAND }, stdin), { stdout: '', exitCode: 0 })
  }
}
