// `lateen ztunnel`: the L4 node proxy.
import { setFlagsFromString } from 'node:v8'
import { Command } from 'commander'
import { createLogging, formatJson, formatPlain } from '../observability/index.ts'
import { loadConfig, processInputs, runZtunnel } from '../ztunnel/index.ts'
import { packageVersion } from './version.ts'

export function create(): Command {
  return new Command('ztunnel')
    .description('L4 node proxy: mutual TLS, policies and telemetry for the TCP connections of this node’s pods.')
    .argument('[command]', 'proxy', 'proxy')
    .addHelpText('after', '\nEvery setting is an environment variable (PROXY_MODE, XDS_ADDRESS, CA_ADDRESS, …).')
    .allowExcessArguments()
    .action(async (command: string) => {
      if (command !== 'proxy' && command !== 'ztunnel') throw new Error(`unknown command: ${command}`)
      // The heap's young generation stays small: the bytes of connections are not in it, and the node has many pods.
      setFlagsFromString('--max-semi-space-size=4')
      const config = loadConfig(processInputs(process.env))
      const logging = createLogging({
        format: config.logFormat === 'json' ? formatJson('message') : formatPlain,
        filter: config.logFilter,
      })
      const stop = new AbortController()
      process.once('SIGTERM', () => stop.abort())
      process.once('SIGINT', () => {
        stop.abort()
        process.once('SIGINT', () => process.exit(130))
      })
      process.exitCode = await runZtunnel(
        config,
        { logging, version: { version: packageVersion(), gitRevision: 'unknown', istioVersion: config.istioVersion } },
        stop.signal,
      )
      await logging.flush()
    })
}
