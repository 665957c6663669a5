// `lateen cni-ptp`: the CNI plugin that joins pods with their node where the host has no CNI plugins.
import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import { runPtpPlugin } from '../standalone/index.ts'

export function create(): Command {
  return new Command('cni-ptp')
    .description('CNI plugin: a link of its own between a pod and its node, with an address of the node’s range.')
    .action(async () => {
      const { exitCode, output } = await runPtpPlugin(process.env, await text(process.stdin))
      process.stdout.write(output)
      process.exitCode = exitCode
    })
}
