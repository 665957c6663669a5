// A debug page of every control plane that runs, for commands that show what they all know.
import type { Command } from 'commander'
import { type ConnectionOptions, connectionOf, UsageError } from './connection.ts'
import { jsonFromPod, portOf, runningPods, withClientOf } from './pod-request.ts'

export interface ControlPlaneOptions extends ConnectionOptions {
  readonly istioNamespace: string
  readonly revision?: string
  readonly debugPort: string
}

export interface PageOfPod {
  /** Name of the control plane's pod. */
  readonly istiod: string
  readonly revision: string
  readonly page: unknown
}

export function withControlPlaneOptions(command: Command): Command {
  return command
    .option('-i, --istioNamespace <name>', 'namespace of the control plane', 'istio-system')
    .option('-r, --revision <name>', 'only control planes of this revision')
    .option('--debug-port <port>', 'port of the control plane’s debug pages', '15014')
}

/** Rejects with a UsageError where none runs. */
export async function pagesOfControlPlanes(options: ControlPlaneOptions, path: string): Promise<readonly PageOfPod[]> {
  const connection = await connectionOf(options)
  const port = portOf('--debug-port', options.debugPort)
  const revision = options.revision === undefined ? '' : `,istio.io/rev=${options.revision}`
  const pods = await withClientOf(connection, (client) =>
    runningPods(client, options.istioNamespace, `app=istiod${revision}`),
  )
  if (pods.length === 0) {
    const which = options.revision === undefined ? 'control plane' : `control plane of revision ${options.revision}`
    const remedy = options.revision === undefined ? '--istioNamespace' : '--istioNamespace or another --revision'
    throw new UsageError(`no ${which} runs in namespace ${options.istioNamespace}: give ${remedy}`)
  }
  return Promise.all(
    pods.map(async (pod) => ({
      istiod: pod.name,
      revision: pod.labels['istio.io/rev'] ?? 'default',
      page: await jsonFromPod(connection, pod, port, path),
    })),
  )
}
