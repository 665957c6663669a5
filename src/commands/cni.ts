// `lateen cni`: the CNI plugin, run by the container runtime.
import { text } from 'node:stream/consumers'
import { Command } from 'commander'

export function create(): Command {
  return new Command('cni')
    .description('CNI plugin: reads CNI_* from the environment and the network configuration from stdin.')
    .action(async () => {
      const { runPlugin } = await import('../cni/index.ts')
      const { stdout, exitCode } = await runPlugin(process.env, await text(process.stdin))
      process.stdout.write(stdout)
      process.exitCode = exitCode
    })
}
