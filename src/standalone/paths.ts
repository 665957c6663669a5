// Where an instance keeps what.
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { instanceId } from './network/plan.ts'

export interface InstancePaths {
  readonly stateDir: string
  readonly instance: string
  /** The administrator's. */
  readonly kubeconfig: string
  /** Kubeconfigs of the parts that are no nodes. */
  readonly credentials: string
  readonly nodes: string
  readonly bin: string
  readonly logs: string
  /** Sockets: a short path, whatever the state directory is called. */
  readonly run: string
}

export function instancePaths(stateDirectory: string): InstancePaths {
  const stateDir = resolve(stateDirectory)
  const instance = instanceId(stateDir)
  return {
    stateDir,
    instance,
    kubeconfig: join(stateDir, 'kubeconfig'),
    credentials: join(stateDir, 'credentials'),
    nodes: join(stateDir, 'nodes'),
    bin: join(stateDir, 'bin'),
    logs: join(stateDir, 'logs'),
    run: `/run/lateen-${instance}`,
  }
}

/** How this program is started: a node executable and the script. */
export function ownCommand(): string[] {
  return [process.execPath, fileURLToPath(new URL('../../bin/lateen.js', import.meta.url))]
}

/** Where the ranges and names of an instance's network are kept. */
export function networkFile(stateDir: string): string {
  return join(stateDir, 'network.json')
}
