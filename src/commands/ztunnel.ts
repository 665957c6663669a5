// `lateen ztunnel`: the L4 node proxy.
import { Command } from 'commander'
import { createLogging, formatJson, formatPlain } from '../observability/index.ts'
import {
  collectWhenIdle,
  formatBuildInfo,
  loadConfig,
  processInputs,
  runZtunnel,
  trimWhenIdle,
  type VersionFacts,
} from '../ztunnel/index.ts'
import { restartWithHeapFlags } from './heap-flags.ts'
import { packageVersion } from './version.ts'

/**
 * A node has one of these beside every other thing it runs, so memory counts: the young generation is small (that of the threads which carry
 * connections is set where they start); wasm, in use only while modules are loaded, is not optimised. The initial heap size is a limit, not an
 * allocation: with the default, the buffers of passing bytes set off collections of the whole heap that cost a tenth of the relaying.
 */
const heapFlags = [
  '--max-semi-space-size=1',
  '--initial-heap-size=64',
  '--wasm-lazy-compilation',
  '--liftoff-only',
  '--expose-gc',
]

export function create(): Command {
  return new Command('ztunnel')
    .description('L4 node proxy: mutual TLS, policies and telemetry for the TCP connections of this node’s pods.')
    .argument('[command]', 'proxy, version or help', 'proxy')
    .addHelpText('after', '\nEvery setting is an environment variable (PROXY_MODE, XDS_ADDRESS, CA_ADDRESS, …).')
    .allowExcessArguments()
    .action(async (name: string, _options: unknown, command: Command) => {
      if (name === 'version') {
        process.stdout.write(`${formatBuildInfo(versionFacts(process.env.ISTIO_META_ISTIO_VERSION))}\n`)
        return
      }
      if (name !== 'proxy') {
        process.stdout.write(command.helpInformation())
        if (name === 'help') return
        process.stderr.write(`unknown command: ${name}\n`)
        process.exitCode = 1
        return
      }
      await restartWithHeapFlags(heapFlags, { MALLOC_ARENA_MAX: '2' })
      const config = loadConfig(processInputs(process.env))
      const logging = createLogging({
        format: config.logFormat === 'json' ? formatJson('message') : formatPlain,
        filter: config.logFilter,
      })
      process.once('exit', () => logging.flushSync())
      using _collecting = collectWhenIdle()
      using _trimming = trimWhenIdle()
      const stop = new AbortController()
      // However often it is asked: a supervisor that asks again must not cut the connections that may still end.
      process.on('SIGTERM', () => stop.abort())
      process.once('SIGINT', () => {
        stop.abort()
        process.once('SIGINT', () => process.exit(130))
      })
      process.exitCode = await runZtunnel(config, { logging, version: versionFacts(config.istioVersion) }, stop.signal)
      await logging.flush()
    })
}

function versionFacts(istioVersion = 'unknown'): VersionFacts {
  return { version: packageVersion(), gitRevision: 'unknown', istioVersion }
}
