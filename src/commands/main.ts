// The command line: finds the command, loads its file, runs it.
import { Command } from 'commander'
import { commands } from './registry.ts'

const program = new Command('lateen')
  .description('An Istio-compatible service mesh: on one Linux machine in one command, or on Kubernetes.')
  .showSuggestionAfterError()
  .showHelpAfterError('(lateen help lists the commands)')

const [name] = process.argv.slice(2)
for (const entry of commands) {
  if (entry.name === name) {
    const { create } = await entry.load()
    program.addCommand(create())
  } else {
    program
      .command(entry.name, { hidden: entry.hidden === true })
      .summary(entry.summary)
      .description(entry.summary)
  }
}
await program.parseAsync()
