// `lateen status`: processes, pods and which of them are in the mesh.
import { Command } from 'commander'
import { status } from '../standalone/index.ts'
import { defaultStateDir } from '../util/index.ts'
import { parseStateDir } from './state-dir-option.ts'

export function create(): Command {
  return new Command('status')
    .description('Show the processes and pods of the mesh on this machine, and which pods are in the mesh.')
    .option('--state-dir <dir>', 'state directory of the mesh', parseStateDir, defaultStateDir())
    .action(async ({ stateDir }: { stateDir: string }) => {
      const { text, healthy } = await status(stateDir)
      process.stdout.write(`${text}\n`)
      if (!healthy) process.exitCode = 1
    })
}
