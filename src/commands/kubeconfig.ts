// `lateen kubeconfig`: where the kubeconfig of the running mesh is, or what is in it.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { defaultStateDir } from '../util/index.ts'
import { UsageError } from './connection.ts'
import { parseStateDir } from './state-dir-option.ts'

export function create(): Command {
  return new Command('kubeconfig')
    .description('Print the path of the kubeconfig of the mesh running on this machine.')
    .option('--state-dir <dir>', 'state directory', parseStateDir, defaultStateDir())
    .option('--raw', 'print the kubeconfig itself')
    .addHelpText('after', '\nExample:\n  export KUBECONFIG=$(lateen kubeconfig)\n  kubectl get pods -A')
    .action(({ stateDir, raw }: { stateDir: string; raw?: boolean }) => {
      const path = join(stateDir, 'kubeconfig')
      if (!existsSync(path)) throw new UsageError(`${path}: no such file: start the mesh with "lateen up"`)
      process.stdout.write(raw ? readFileSync(path, 'utf8') : `${path}\n`)
    })
}
