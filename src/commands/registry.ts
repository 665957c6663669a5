// The commands, with the file that holds each one. A file is loaded only when its command runs.
import type { Command } from 'commander'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Not listed by help: run by other processes, not by people. */
  readonly hidden?: boolean
  readonly load: () => Promise<{ create: () => Command }>
}

export const commands: readonly CommandEntry[] = [
  // Each process and each command has one line here, in the order that help shows.
  { name: 'cni-agent', summary: 'Node agent: enrols pods and installs the CNI plugin', load: () => import('./cni-agent.ts') },
  { name: 'cni', summary: 'CNI plugin, run by the container runtime', hidden: true, load: () => import('./cni.ts') },
]
