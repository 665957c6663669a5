// The ADD command: decides whether a new pod is captured, and by whom.
import type { Container, Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { parseBoolean } from '../../redirect/index.ts'
import { isEligible, sidecarStatusAnnotation } from '../eligibility.ts'
import { CniError, type PluginConfig, type PodReference } from './config.ts'
import { type AgentIp, addressesOf } from './result.ts'

/** What the plugin tells the node agent about a new pod. */
export interface AddEvent {
  readonly Netns: string
  readonly PodName: string
  readonly PodNamespace: string
  /** Tells a pod from an earlier one of its name; absent when the runtime does not say. */
  readonly PodUID?: string
  readonly IPs: AgentIp[] | null
}

export interface AddInput {
  readonly config: PluginConfig
  readonly pod: PodReference
  readonly netns: string
}

export interface AddDependencies {
  /** Connects to the API server; called only when a decision needs it. */
  readonly connect: () => Promise<{
    pod(namespace: string, name: string): Promise<Pod>
    namespace(name: string): Promise<Namespace>
  }>
  /** Resolves when the agent has captured the pod. */
  readonly notifyAgent: (event: AddEvent) => Promise<void>
  readonly sleep: (ms: number) => Promise<void>
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void
}

const retryMs = 1000
const attempts = { ambient: 2, ambientWithRetry: 31, sidecar: 30 } as const

/** Resolves with what was done; rejects when the pod has to be captured and could not be: it must not start then. */
export async function addPod(input: AddInput, deps: AddDependencies): Promise<'ambient' | 'none'> {
  const { config, pod } = input
  // Decided before anything that needs the API: otherwise a node whose credentials are stale could never start its agent again.
  if (pod.name.startsWith('istio-cni-node-') && pod.namespace === config.podNamespace) return 'none'
  const api = await connect(deps)
  if (pod.name === '' || pod.namespace === '' || config.excludeNamespaces.includes(pod.namespace)) return 'none'
  let found: Pod | undefined
  if (config.ambientEnabled) {
    const ambient = await decideAmbient(input, api, deps)
    if (ambient.eligible) {
      const IPs = addressesOf(config)
      await deps.notifyAgent({
        Netns: input.netns,
        PodName: pod.name,
        PodNamespace: pod.namespace,
        ...(pod.uid === '' ? {} : { PodUID: pod.uid }),
        IPs,
      })
      return 'ambient'
    }
    found = ambient.pod
  }
  found ??= await tryRepeatedly(attempts.sidecar, () => api.pod(pod.namespace, pod.name), deps)
  const excluded = whyNoSidecarRules(found)
  if (excluded === undefined) {
    throw new CniError(
      `pod ${pod.namespace}/${pod.name} has a sidecar whose traffic this plugin would have to capture, which it does not do: let the istio-init container do it`,
    )
  }
  deps.log('info', `pod ${pod.namespace}/${pod.name} is not captured: ${excluded}`)
  return 'none'
}

type Api = Awaited<ReturnType<AddDependencies['connect']>>

async function connect(deps: AddDependencies): Promise<Api> {
  try {
    return await deps.connect()
  } catch (error) {
    throw new CniError(`failed to createNewK8sClient: ${(error as Error).message}`)
  }
}

async function decideAmbient(
  { config, pod }: AddInput,
  api: Api,
  deps: AddDependencies,
): Promise<{ eligible: boolean; pod?: Pod }> {
  const tries = config.retryAmbientDetection ? attempts.ambientWithRetry : attempts.ambient
  let seen: Pod | undefined
  const lookup = async (): Promise<{ eligible: boolean; pod: Pod }> => {
    seen = await api.pod(pod.namespace, pod.name)
    const namespace = await api.namespace(pod.namespace)
    return { eligible: isEligible(seen, namespace.metadata?.labels ?? {}, config.selectors), pod: seen }
  }
  try {
    return await tryRepeatedly(tries, lookup, deps)
  } catch (error) {
    if (config.retryAmbientDetection) throw error
    deps.log(
      'warn',
      `could not tell whether ${pod.namespace}/${pod.name} is an ambient pod: ${(error as Error).message}`,
    )
    return { eligible: false, ...(seen === undefined ? {} : { pod: seen }) }
  }
}

async function tryRepeatedly<T>(tries: number, attempt: () => Promise<T>, deps: AddDependencies): Promise<T> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0) throw error
      await deps.sleep(retryMs)
    }
  }
}

/** Why the pod needs no sidecar rules of this plugin; undefined when it does need them. */
function whyNoSidecarRules(pod: Pod): string | undefined {
  const init = pod.spec?.initContainers ?? []
  const containers: Container[] = [...init, ...(pod.spec?.containers ?? [])]
  if (containers.some(({ name }) => name === 'istio-init')) return 'its istio-init container makes the rules'
  const proxy = containers.find(({ name }) => name === 'istio-proxy')
  const disabled = proxy?.env?.some(({ name, value }) => name === 'DISABLE_ENVOY' && parseBoolean(value ?? '') === true)
  if (disabled) return 'DISABLE_ENVOY is true'
  if (proxy === undefined) return 'it has no istio-proxy container'
  if (proxy.args?.[1] !== undefined && proxy.args[1] !== 'sidecar') return `its proxy is a ${proxy.args[1]}`
  const key = 'sidecar.istio.io/inject'
  const inject = pod.metadata?.labels?.[key] ?? pod.metadata?.annotations?.[key]
  if (inject !== undefined && parseBoolean(inject) === false) return `${key} is ${inject}`
  if (pod.metadata?.annotations?.[sidecarStatusAnnotation] === undefined)
    return `it has no annotation ${sidecarStatusAnnotation}`
  return undefined
}
