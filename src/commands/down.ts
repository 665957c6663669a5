// `lateen down`: ends the mesh of this machine and removes its state.
import { Command } from 'commander'
import { down } from '../standalone/index.ts'
import { defaultStateDir } from '../util/index.ts'
import { parseStateDir } from './state-dir-option.ts'

export function create(): Command {
  return new Command('down')
    .description('End the mesh of this machine and remove everything it left: processes, namespaces, rules, state.')
    .option('--state-dir <dir>', 'state directory of the mesh', parseStateDir, defaultStateDir())
    .option('--keep-state', 'keep what the API holds for the next "lateen up"')
    .action(async ({ stateDir, keepState = false }: { stateDir: string; keepState?: boolean }) => {
      const there = await down({ stateDir, keepState })
      process.stdout.write(there ? `${ended(stateDir, keepState)}\n` : `There is no mesh in ${stateDir}.\n`)
    })
}

function ended(stateDir: string, stateIsKept: boolean): string {
  return stateIsKept
    ? `The mesh of ${stateDir} has ended; what its API holds is kept for the next "lateen up".`
    : `The mesh of ${stateDir} is gone.`
}
