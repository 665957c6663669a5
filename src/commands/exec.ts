// `lateen exec`: runs a command in a container, over the API server's WebSocket.
import { Command } from 'commander'
import WebSocket from 'ws'
import { type ConnectionOptions, connectionOf, UsageError, withClient, withConnectionOptions } from './connection.ts'
import { podNameOf } from './pod-names.ts'

interface ExecOptions extends ConnectionOptions {
  readonly container?: string
  readonly stdin?: boolean
  readonly tty?: boolean
}

/** Channels of the protocol: the first byte of each message. */
const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

export function create(): Command {
  const command = new Command('exec')
    .description('Run a command in a container.')
    .argument('<pod>', 'name of the pod, or of what runs it: deploy/reviews-v1, ds/ztunnel, svc/reviews')
    .argument('<command...>', 'the command, after --')
    .option('-c, --container <name>', 'container (default: the first)')
    .option('-i, --stdin', 'pass standard input on')
    .option('-t, --tty', 'with a terminal')
    .addHelpText(
      'after',
      '\nExample:\n  lateen exec -n library deploy/reader -- lateen sample fetch http://details:9080/details/0',
    )
  return withConnectionOptions(command).action(async (target: string, words: string[], options: ExecOptions) => {
    process.exitCode = await exec(target, words, options)
  })
}

async function exec(target: string, words: readonly string[], options: ExecOptions): Promise<number> {
  const connection = await connectionOf(options)
  const namespace = options.namespace ?? (connection.namespace || 'default')
  const name = await withClient(options, (client) => podNameOf(client, namespace, target))
  const query = new URLSearchParams(words.map((word): [string, string] => ['command', word]))
  const tty = options.tty === true
  for (const [key, on] of [
    ['stdin', options.stdin],
    ['stdout', true],
    ['stderr', !tty],
    ['tty', tty],
  ] as const) {
    if (on) query.set(key, 'true')
  }
  if (options.container !== undefined) query.set('container', options.container)
  const url = `${connection.server.replace(/^http/, 'ws')}/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/exec?${query}`
  const { ca, cert, key } = await connection.tls()
  const authorization = await connection.authorization()
  const socket = new WebSocket(url, protocols, {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
    rejectUnauthorized: !connection.insecureSkipTlsVerify,
    ...(connection.tlsServerName === undefined ? {} : { servername: connection.tlsServerName }),
    headers: authorization === undefined ? {} : { authorization },
  })
  return converse(socket, options)
}

function converse(socket: WebSocket, options: ExecOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    let exitCode: number | undefined
    const send = (to: number, data: Uint8Array | string): void => {
      if (socket.readyState === WebSocket.OPEN) socket.send(Buffer.concat([Buffer.of(to), Buffer.from(data)]))
    }
    const terminal = options.tty === true && process.stdin.isTTY ? process.stdin : undefined
    const resize = (): void => {
      send(channel.resize, JSON.stringify({ Width: process.stdout.columns, Height: process.stdout.rows }))
    }
    const end = (): void => {
      terminal?.setRawMode(false)
      process.stdout.off('resize', resize)
      process.stdin.destroy()
    }
    socket.on('open', () => {
      if (terminal !== undefined) {
        terminal.setRawMode(true)
        process.stdout.on('resize', resize)
        resize()
      }
      if (!options.stdin) return
      process.stdin.on('data', (chunk: Buffer) => send(channel.stdin, chunk))
      process.stdin.on('end', () => {
        if (socket.protocol === protocols[0]) send(channel.close, Buffer.of(channel.stdin))
      })
    })
    socket.on('message', (message: Buffer) => {
      const data = message.subarray(1)
      switch (message[0]) {
        case channel.stdout:
          process.stdout.write(data)
          break
        case channel.stderr:
          process.stderr.write(data)
          break
        case channel.error:
          exitCode = exitCodeOf(data.toString('utf8'))
      }
    })
    socket.on('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        end()
        const text = Buffer.concat(chunks).toString('utf8')
        const message = text.startsWith('{') ? String((JSON.parse(text) as { message?: string }).message) : text
        reject(new UsageError(message || `HTTP ${response.statusCode}`))
      })
    })
    socket.on('error', (error) => {
      end()
      reject(error)
    })
    socket.on('close', () => {
      end()
      if (exitCode === undefined) reject(new UsageError('the connection ended before the command did'))
      else resolve(exitCode)
    })
  })
}

/** The exit code in the Status object that ends the conversation. */
function exitCodeOf(text: string): number {
  const status = JSON.parse(text) as {
    status?: string
    message?: string
    details?: { causes?: { reason?: string; message?: string }[] }
  }
  if (status.status === 'Success') return 0
  const code = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message
  if (code !== undefined) return Number(code)
  process.stderr.write(`${status.message}\n`)
  return 1
}
