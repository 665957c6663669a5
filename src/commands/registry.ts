// The commands, with the file that holds each one. A file is loaded only when its command runs.
import type { Command } from 'commander'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ create: () => Command }>
}

export const commands: readonly CommandEntry[] = []
