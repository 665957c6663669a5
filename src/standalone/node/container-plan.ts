// What to run for a container: the program, its environment and its view of the file system.

import { setprivArguments } from './capabilities.ts'
import { ConfigError } from './environment.ts'
import { expandReferences } from './expand.ts'
import type { Mount } from './mounts.ts'
import type { Container, PodSpec } from './types.ts'

/** The image name that stands for the host's own file system. */
export const hostImage = 'host'

export interface ContainerPlan {
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly workingDirectory: string
  /** Words in front of argv that give up rights. */
  readonly privileges: readonly string[]
  readonly mounts: readonly Mount[]
  readonly hostname: string
  /** Path of the network namespace; undefined for the node's own. */
  readonly networkNamespace?: string
  readonly terminationMessagePath: string
}

/** What a user can do about an image that is not `host`. */
export function imageMessage(container: Container): string {
  return (
    `Container image "${container.image ?? ''}" is not available: pods on this machine run programs of the host, not images. ` +
    `Set "image: ${hostImage}" and a "command" for container ${container.name}, or run the workload on Kubernetes`
  )
}

/** @throws ConfigError when the container says nothing that could be run. */
export function planContainer(
  spec: PodSpec,
  container: Container,
  given: Pick<ContainerPlan, 'mounts' | 'hostname' | 'networkNamespace'> & {
    readonly environment: ReadonlyMap<string, string>
    /** Where programs are looked for, unless the container sets PATH. */
    readonly path: string
  },
): ContainerPlan {
  const words = [...(container.command ?? []), ...(container.args ?? [])]
  if (container.command === undefined || container.command.length === 0) {
    throw new ConfigError(
      `container ${container.name} has no command: image "${hostImage}" has no default one, set "command"`,
    )
  }
  const defaults = { PATH: given.path, HOME: '/root' }
  return {
    argv: words.map((word) => expandReferences(word, given.environment)),
    environment: { ...defaults, HOSTNAME: given.hostname, ...Object.fromEntries(given.environment) },
    workingDirectory: container.workingDir ?? '/',
    privileges: setprivArguments(spec, container),
    mounts: given.mounts,
    hostname: given.hostname,
    ...(given.networkNamespace === undefined ? {} : { networkNamespace: given.networkNamespace }),
    terminationMessagePath: container.terminationMessagePath ?? '/dev/termination-log',
  }
}
