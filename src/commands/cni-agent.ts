// `lateen cni-agent`: the node agent.
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { agentSettings, runAgent } from '../cni/index.ts'
import { createLogging } from '../observability/index.ts'
import { UsageError } from './connection.ts'
import { readOutputLevels } from './output-levels.ts'

export function create(): Command {
  return new Command('cni-agent')
    .description('Node agent: installs the CNI plugin, enrols pods of this node in the mesh and tells the node proxy.')
    .addHelpText(
      'after',
      '\nEvery setting is an environment variable (NODE_NAME, AMBIENT_ENABLED, …) or, the same, a flag: --ambient-enabled true.',
    )
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (_options: unknown, command: Command) => {
      const env = { ...process.env, ...settingsOfFlags(command.args) }
      const logging = createLogging({ filter: readOutputLevels('LOG_OUTPUT_LEVEL', env.LOG_OUTPUT_LEVEL ?? 'info') })
      const stop = new AbortController()
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
      const lateen = fileURLToPath(new URL('../../bin/lateen.js', import.meta.url))
      await runAgent({
        settings: agentSettings(env),
        env,
        logging,
        pluginCommand: [process.execPath, lateen, 'cni'],
        signal: stop.signal,
      })
      await logging.flush()
    })
}

/** `--cni-conf-name x` and `--cni-conf-name=x` as the variable CNI_CONF_NAME. */
function settingsOfFlags(args: readonly string[]): Record<string, string> {
  const settings: Record<string, string> = {}
  for (let at = 0; at < args.length; at += 1) {
    const flag = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/.exec(args[at] ?? '')
    if (flag?.[1] === undefined) throw new UsageError(`unexpected argument "${args[at]}": expected --<setting> <value>`)
    const next = args[at + 1]
    const takesNext = flag[2] === undefined && next !== undefined && !next.startsWith('--')
    settings[flag[1].replaceAll('-', '_').toUpperCase()] = flag[2] ?? (takesNext ? next : 'true')
    if (takesNext) at += 1
  }
  return settings
}
