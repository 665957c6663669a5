// Which API server a command talks to: the kubeconfig named, the environment's, or the running one of this machine.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type Connection, clientOf, type KubeClient, loadConnection } from '../kube/index.ts'
import { defaultStateDir } from '../util/index.ts'
import { parseStateDir } from './state-dir-option.ts'

export interface ConnectionOptions {
  readonly kubeconfig?: string
  readonly stateDir?: string
  readonly namespace?: string
}

/** Adds the options every command that talks to an API server has. */
export function withConnectionOptions(command: Command, namespaceIs = 'namespace of the objects'): Command {
  return command
    .option('-n, --namespace <name>', namespaceIs)
    .option(
      '--kubeconfig <file>',
      'API server to talk to (default: $KUBECONFIG, else the mesh running on this machine)',
    )
    .option('--state-dir <dir>', 'state directory of the mesh running on this machine', parseStateDir)
}

/** An error in what the user asked for; printed without a stack. */
export class UsageError extends Error {
  readonly code = 'USAGE'
}

export async function connectionOf(options: ConnectionOptions): Promise<Connection> {
  const own = join(options.stateDir ?? defaultStateDir(), 'kubeconfig')
  if (options.kubeconfig !== undefined) return loadConnection({ kubeconfig: options.kubeconfig })
  if (options.stateDir === undefined && (process.env.KUBECONFIG ?? '') !== '') return loadConnection()
  if (existsSync(own)) return loadConnection({ kubeconfig: own })
  if (options.stateDir !== undefined)
    throw new UsageError(`${own}: no such file: no mesh runs with this state directory`)
  try {
    return await loadConnection()
  } catch (error) {
    throw new UsageError(
      `no API server to talk to: start one with "lateen up", or name a running one: --state-dir, --kubeconfig or KUBECONFIG`,
      { cause: error },
    )
  }
}

/** Runs an action with a client and closes it afterwards. */
export async function withClient<T>(
  options: ConnectionOptions,
  action: (client: KubeClient, namespace: string) => Promise<T>,
): Promise<T> {
  const connection = await connectionOf(options)
  const client = clientOf(connection, { userAgent: 'lateen' })
  try {
    return await action(client, options.namespace ?? (connection.namespace || 'default'))
  } finally {
    await client.close()
  }
}
