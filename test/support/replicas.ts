// Replicas of the control plane as processes, and the one address that clients know them by.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

const program = join(import.meta.dirname, '../../src/commands/main.ts')

export interface Replica {
  readonly name: string
  readonly port: number
  /** `host:port` of its debug pages and readiness. */
  readonly http: string
  kill(): Promise<void>
  /** Tells it to stop in order; resolves with its exit code. */
  stop(): Promise<number | null>
}

/** Starts a control plane as a process; resolves when it serves. */

export async function startReplica(kubeconfig: string, name: string, more: readonly string[] = []): Promise<Replica> {
  const [port, http] = [await freePort(), await freePort()]
  const flags = ['--kubeconfig', kubeconfig, '--secureGRPCAddr', `127.0.0.1:${port}`, '--httpAddr', `127.0.0.1:${http}`]
  const child: ChildProcess = spawn(
    process.execPath,
    [
      program,
      'discovery',
      ...flags,
      '--monitoringAddr',
      '127.0.0.1:0',
      '--ctrlz_port',
      '0',
      '--meshConfig',
      `${kubeconfig}.none`,
      ...more,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        POD_NAME: name,
        ROOT_CA_DIR: `${kubeconfig}.none`,
        CA_TRUSTED_NODE_ACCOUNTS: 'istio-system/ztunnel',
      },
    },
  )
  let said = ''
  const ready = Promise.withResolvers<void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
    if (/\tready\t/.test(said)) ready.resolve()
  })
  child.once('exit', (code) => ready.reject(new Error(`${name} ended with ${code}:\n${said}`)))
  await ready.promise
  return {
    name,
    port,
    http: `127.0.0.1:${http}`,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      const [code] = (await ended) as [number | null]
      return code
    },
  }
}

/** What a Service is to its clients: one address before all replicas; connections to a dead one go to the next. `turns`: each begins at another. */
export async function balance(replicas: readonly Replica[], turns = false) {
  const sockets = new Set<Socket>()
  let count = 0
  const server = createServer((from) => {
    const first = turns ? count % replicas.length : 0
    count += 1
    const attempt = (tried: number): void => {
      const replica = replicas[(first + tried) % replicas.length]
      if (replica === undefined || tried >= replicas.length) {
        from.destroy()
        return
      }
      const to = connect(replica.port, '127.0.0.1')
      to.once('error', () => {
        to.destroy()
        if (to.bytesRead === 0 && to.readyState !== 'open' && !from.destroyed) attempt(tried + 1)
      })
      to.once('connect', () => {
        from.pipe(to).pipe(from)
        to.once('close', () => from.destroy())
        from.once('close', () => to.destroy())
      })
      sockets.add(to)
    }
    from.on('error', () => from.destroy())
    sockets.add(from)
    attempt(0)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  return {
    port: typeof at === 'object' && at !== null ? at.port : 0,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
