// The command line: finds the command, loads its file, runs it.
import { Command } from 'commander'
import { commands } from './registry.ts'
import { pointToHelp } from './usage-errors.ts'
import { packageVersion } from './version.ts'

const program = new Command('lateen')
  .description('An Istio-compatible service mesh: on one Linux machine in one command, or on Kubernetes.')
  .version(packageVersion(), '-V, --version', 'print the version')
  .showSuggestionAfterError()
  .showHelpAfterError('("lateen help" lists the commands)')

/** Errors that say all a user needs: their stack would only hide it. Anything else is a fault of ours. */
const plainCodes = new Set<unknown>(['USAGE', 'INVALID_CONFIG', 'INVALID_MANIFEST', 'INVALID_SETTING'])

const unreachable = 'Is the mesh running? "lateen status" tells, "lateen up" starts it.'

function isPlain(error: unknown): boolean {
  const { code, name } = error as { code?: unknown; name?: unknown }
  return plainCodes.has(code) || name === 'KubeError' || name === 'StandaloneError'
}

function isCommand(name: string): boolean {
  return commands.some((entry) => entry.name === name || entry.alias === name)
}

const [first, second] = process.argv.slice(2)
const name = first === 'help' ? second : first
for (const entry of commands) {
  if (name !== undefined && (entry.name === name || entry.alias === name)) {
    const { create } = await entry.load()
    program.addCommand(pointToHelp(create(), `lateen ${entry.name}`), { hidden: entry.hidden === true })
  } else {
    program.command(entry.name, { hidden: entry.hidden === true }).description(entry.summary)
  }
}
try {
  if (first === 'help' && second !== undefined && second !== 'help' && !isCommand(second)) {
    program.error(`error: unknown command '${second}'`)
  }
  await program.parseAsync()
} catch (error) {
  const text =
    error instanceof Error ? (isPlain(error) ? error.message : (error.stack ?? error.message)) : String(error)
  const advice = (error as { reason?: unknown } | undefined)?.reason === 'Unreachable' ? `\n${unreachable}` : ''
  process.stderr.write(`${text}${advice}\n`)
  process.exitCode = 1
}
