// The CNI plugin: one short process a pod sandbox, spoken to by the container runtime over stdin, stdout and the environment.
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { addPod } from './add.ts'
import { notifyAgent } from './agent-client.ts'
import { CniError, defaultRunDir, parseCniArgs, parsePluginConfig, supportedVersions } from './config.ts'
import { createPluginLog, type PluginLog } from './log.ts'
import { resultOf } from './result.ts'

export interface PluginOutput {
  /** For stdout; empty for commands without a result. */
  readonly stdout: string
  readonly exitCode: 0 | 1
}

export type PluginEnvironment = Readonly<Record<string, string | undefined>>

/** Runs one command of the CNI protocol. Never rejects: a failure is an error object on stdout, as the protocol wants it. */
export async function runPlugin(env: PluginEnvironment, stdin: string): Promise<PluginOutput> {
  const command = env.CNI_COMMAND ?? ''
  const said = { version: '1.0.0', log: createPluginLog(defaultRunDir, 'info') }
  try {
    const result = await dispatch(command, env, stdin, said)
    return { stdout: result === undefined ? '' : `${JSON.stringify(result)}\n`, exitCode: 0 }
  } catch (error) {
    const failure =
      error instanceof CniError
        ? error
        : new CniError(`istio-cni panicked during cmd${command}: ${(error as Error).message}`)
    said.log.write('error', failure.message)
    const { code, message, details } = failure
    const body = { cniVersion: said.version, code, msg: message, ...(details === '' ? {} : { details }) }
    return { stdout: `${JSON.stringify(body)}\n`, exitCode: 1 }
  } finally {
    await said.log.flush()
  }
}

async function dispatch(
  command: string,
  env: PluginEnvironment,
  stdin: string,
  said: { version: string; log: PluginLog },
): Promise<unknown> {
  switch (command) {
    case 'VERSION':
      return { cniVersion: '1.1.0', supportedVersions }
    case 'DEL':
    case 'CHECK':
    case 'GC':
      return undefined
    case 'STATUS':
      return status(parsePluginConfig(stdin).agentRunDir)
    case 'ADD':
      break
    default:
      throw new CniError(`unknown CNI_COMMAND: ${command}`, 4)
  }
  const config = parsePluginConfig(stdin)
  said.version = config.cniVersion
  said.log = createPluginLog(config.agentRunDir, config.logLevel)
  const pod = parseCniArgs(env.CNI_ARGS ?? '')
  const clients: KubeClient[] = []
  const over = new AbortController()
  try {
    const adding = addPod(
      { config, pod, netns: env.CNI_NETNS ?? '' },
      {
        connect: async () => {
          // Loaded only here: most of the plugin's start-up time would be this.
          const { createKubeClient, isKubeError } = await import('../../kube/index.ts')
          const connect = async (): Promise<KubeClient> => {
            const client = await createKubeClient({ kubeconfig: `${config.agentRunDir}/istio-cni-kubeconfig` })
            clients.push(client)
            return client
          }
          let client: KubeClient | undefined = await connect()
          return podsAndNamespaces(async (request) => {
            client ??= await connect()
            try {
              return await request(client)
            } catch (error) {
              // The agent writes the file anew when its token changes: the next attempt goes by what it says then.
              if (isKubeError(error, 401)) client = undefined
              throw error
            }
          })
        },
        notifyAgent: (event) => notifyAgent(config.agentRunDir, event),
        sleep: (ms) => sleep(ms, undefined, { signal: over.signal }),
        log: said.log.write,
      },
    )
    await within(addLimitMs, 'the ADD command', adding)
  } catch (error) {
    throw error instanceof CniError ? error : new CniError((error as Error).message)
  } finally {
    over.abort()
    for (const client of clients) await client.close()
  }
  return resultOf(config)
}

/** Below the two minutes that a kubelet waits for a sandbox: the failure is to be ours to explain. */
const addLimitMs = 90_000
const requestLimitMs = 10_000

async function within<T>(limitMs: number, what: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new CniError(`${what} took longer than ${limitMs} ms`)), limitMs)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function podsAndNamespaces(ask: <T>(request: (client: KubeClient) => Promise<T>) => Promise<T>): {
  pod(namespace: string, name: string): Promise<Pod>
  namespace(name: string): Promise<Namespace>
} {
  const found = async <T>(what: string, request: (client: KubeClient) => Promise<unknown>): Promise<T> => {
    const object = await within(requestLimitMs, `the request for ${what}`, ask(request))
    if (object === undefined) throw new CniError(`${what} not found`)
    return object as T
  }
  return {
    pod: (namespace, name) =>
      found(`pods "${name}" in namespace ${namespace}`, (client) => client.get(resources.pods, { namespace, name })),
    namespace: (name) => found(`namespaces "${name}"`, (client) => client.get(resources.namespaces, { name })),
  }
}

const statusLimitMs = 5_000

/** The plugin is available when the agent accepts connections. */
function status(runDir: string): Promise<undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(`${runDir}/pluginevent.sock`)
    socket.setTimeout(statusLimitMs, () => socket.destroy(new Error(`no answer within ${statusLimitMs} ms`)))
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', (error) =>
      reject(new CniError('plugin not available', 50, `the node agent does not accept connections: ${error.message}`)),
    )
  })
}
