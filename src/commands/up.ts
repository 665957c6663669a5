// `lateen up`: a running mesh on this machine.
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { mostNodes, reportSampleCheck, up, upDetached } from '../standalone/index.ts'
import { defaultStateDir } from '../util/index.ts'
import { UsageError } from './connection.ts'
import { collect, manifestsOf } from './manifests.ts'
import { parseStateDir } from './state-dir-option.ts'

interface Flags {
  readonly filename?: readonly string[]
  readonly nodes: number
  readonly stateDir: string
  readonly detach?: boolean
  readonly check?: boolean
  readonly mesh: boolean
  readonly trustBundle?: boolean
  readonly sample: boolean
}

export function create(): Command {
  return new Command('up')
    .description('Run a mesh on this machine: API server, nodes, control plane, node proxies, and your pods.')
    .option(
      '-f, --filename <file>',
      'manifests to apply: file, folder or -; may be repeated (default: the sample)',
      collect,
    )
    .option('--nodes <number>', 'how many nodes', parseCount, 2)
    .option('--state-dir <dir>', 'where everything is kept', parseStateDir, defaultStateDir())
    .option('--detach', 'run in the background')
    .option(
      '--check',
      'verify that the sample works as it should: of the mesh that runs already, or of one started for this and ended again',
    )
    .option('--no-mesh', 'pods and services only')
    .option('--trust-bundle', 'hand out the roots of the mesh in a ClusterTrustBundle instead of ConfigMaps')
    .option('--no-sample', 'apply nothing when there is no -f')
    .action(async (flags: Flags) => {
      process.exitCode = await run(flags)
    })
}

async function run(flags: Flags): Promise<number> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  // A terminal or reader that went away must not keep the end from being an orderly one.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
  if (flags.detach && flags.check) {
    throw new UsageError('--check waits for its result and ends by itself: leave out --detach')
  }
  if (flags.detach) {
    await upDetached({
      stateDir: flags.stateDir,
      words: process.argv.slice(process.argv.indexOf('up') + 1).filter((word) => word !== '--detach'),
      readsInput: flags.filename?.includes('-') === true,
      print: (text) => process.stdout.write(text),
      signal: stop.signal,
    })
    return 0
  }
  const sample = fileURLToPath(new URL('../../samples/bookinfo', import.meta.url))
  const files = flags.filename ?? (flags.sample ? [sample] : [])
  return up({
    stateDir: flags.stateDir,
    nodes: flags.nodes,
    mesh: flags.mesh,
    trustBundle: flags.trustBundle === true,
    manifests: files.length === 0 ? [] : manifestsOf(files),
    print: (line) => process.stdout.write(`${line}\n`),
    signal: stop.signal,
    words: process.argv.slice(2),
    ...(flags.check && { check: (instance, print) => reportSampleCheck(instance, print) }),
  })
}

function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > mostNodes)
    throw new InvalidArgumentError(`expected a number from 1 to ${mostNodes}`)
  return count
}
