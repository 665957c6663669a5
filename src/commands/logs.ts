// `lateen logs`: what a container has written.
import { Command, InvalidArgumentError } from 'commander'
import { type ConnectionOptions, UsageError, withClient, withConnectionOptions } from './connection.ts'
import { podNameOf } from './pod-names.ts'

interface LogOptions extends ConnectionOptions {
  readonly container?: string
  readonly follow?: boolean
  readonly tail?: number
  readonly since?: number
  readonly previous?: boolean
  readonly timestamps?: boolean
}

export function create(): Command {
  const command = new Command('logs')
    .description('Print the log of a container.')
    .argument('<pod>', 'name of the pod, or of what runs it: deploy/reviews-v1, ds/ztunnel, svc/reviews')
    .option('-c, --container <name>', 'container (default: the first)')
    .option('-f, --follow', 'go on as the log grows')
    .option('--tail <lines>', 'only the last lines', parseLines)
    .option('--since <duration>', 'only lines newer than this: 30s, 5m, 2h', parseSeconds)
    .option('-p, --previous', 'the log of the container before its last restart')
    .option('--timestamps', 'with the time of each line')
  return withConnectionOptions(command).action((target: string, options: LogOptions) =>
    withClient(options, async (client, namespace) => {
      const name = await podNameOf(client, namespace, target)
      const query = new URLSearchParams()
      if (options.container !== undefined) query.set('container', options.container)
      if (options.follow) query.set('follow', 'true')
      if (options.tail !== undefined) query.set('tailLines', String(options.tail))
      if (options.since !== undefined) query.set('sinceSeconds', String(options.since))
      if (options.previous) query.set('previous', 'true')
      if (options.timestamps) query.set('timestamps', 'true')
      const response = await client.request(
        `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/log?${query}`,
      )
      if (!response.ok) {
        const text = await response.text()
        throw new UsageError(text.startsWith('{') ? String((JSON.parse(text) as { message?: string }).message) : text)
      }
      for await (const chunk of response.body ?? []) {
        // Waiting for a slow terminal keeps the rest of the log on the node.
        if (!process.stdout.write(chunk)) await new Promise((resolve) => process.stdout.once('drain', resolve))
      }
    }),
  )
}

function parseLines(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('expected a number of lines')
  return Number(text)
}

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 }

/** `90`, `90s`, `1h30m` in seconds. */
function parseSeconds(text: string): number {
  if (!/^(\d+|(\d+[smh])+)$/.test(text)) throw new InvalidArgumentError('expected a duration such as 30s, 5m or 2h')
  const parts = [...text.matchAll(/(\d+)([smh]?)/g)]
  return Math.max(
    1,
    parts.reduce((sum, [, number, unit]) => sum + Number(number) * (secondsOf[unit ?? ''] ?? 1), 0),
  )
}
