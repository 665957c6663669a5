// Without root: the whole instance runs in user, network and mount namespaces of its own, in which this user is root.
// Only one thing crosses the border: connections to the API server, over a socket in the file system.
import { spawn } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import net from 'node:net'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { quote } from './node/mounts.ts'
import { ownCommand } from './paths.ts'
import { isInstalled, systemPath } from './prerequisites.ts'
import { tryRun } from './run.ts'

/** Set in the environment of the inner process. */
const marker = 'LATEEN_ROOTLESS'

export function isRootless(env: NodeJS.ProcessEnv = process.env): boolean {
  return env[marker] === '1'
}

/** The socket over which the API server is reached from outside. */
export function apiSocket(stateDir: string): string {
  return join(stateDir, 'api.sock')
}

/** @throws StandaloneError that says what the kernel or the system lacks */
async function requireNamespaces(): Promise<void> {
  if (!isInstalled('unshare')) throw new StandaloneError('MISSING_PROGRAMS', 'unshare is missing: install util-linux')
  const probe = await tryRun([...unshare(), 'sh', '-c', 'mount -t tmpfs none /run && ip link set lo up'])
  if (probe.code === 0) return
  const settings = [
    ['/proc/sys/kernel/unprivileged_userns_clone', '1', 'kernel.unprivileged_userns_clone=1'],
    ['/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '0', 'kernel.apparmor_restrict_unprivileged_userns=0'],
  ] as const
  const wrong = settings.filter(([path, good]) => existsSync(path) && readFileSync(path, 'utf8').trim() !== good)
  const advice = wrong.map(([, , setting]) => `sudo sysctl -w ${setting}`).join('; ')
  throw new StandaloneError(
    'NO_NAMESPACES',
    `without root, lateen needs user namespaces, which this system refuses (${probe.stderr.trim()}): ${advice === '' ? 'run it with sudo' : `${advice}, or run it with sudo`}`,
  )
}

function unshare(): string[] {
  return ['unshare', '--user', '--map-root-user', '--net', '--mount', '--ipc', '--']
}

/** Runs `lateen <words>` in the inner namespaces; resolves with its exit code. */
export async function runRootless(
  stateDir: string,
  port: number,
  words: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  process.env.PATH = systemPath(process.env.PATH)
  await requireNamespaces()
  const script = [...innerMounts(), `exec ${[...ownCommand(), ...words].map(quote).join(' ')}`].join('\n')
  const [file = '', ...args] = [...unshare(), 'sh', '-ec', script]
  const child = spawn(file, args, { stdio: 'inherit', detached: true, env: { ...process.env, [marker]: '1' } })
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('error', reject)
  child.once('exit', (code) => resolve(code ?? 137))
  const bridge = await listenBridge({ host: '127.0.0.1', port }, { path: apiSocket(stateDir) })
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', end)
    await bridge[Symbol.asyncDispose]()
  }
}

/** In the inner mount namespace /run is ours, with what the host has there; /sys shows the inner network. */
function innerMounts(): string[] {
  const lines = ['d=$(mktemp -d)', 'mount --rbind /run "$d"', 'mount -t tmpfs -o mode=0755 lateen /run']
  for (const name of readdirSync('/run')) {
    const path = `/run/${name}`
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined || name === 'netns' || name === 'xtables.lock' || name.startsWith('lateen-')) continue
    if (stat.isSymbolicLink()) lines.push(`ln -s ${quote(readlinkSync(path))} ${quote(path)}`)
    else if (stat.isDirectory()) {
      // Others may remove theirs meanwhile.
      lines.push(
        `mkdir -p ${quote(path)} && { mount --rbind "$d"/${quote(name)} ${quote(path)} || [ ! -e "$d"/${quote(name)} ]; }`,
      )
    }
  }
  return [
    ...lines,
    'umount -l "$d"',
    'rmdir "$d"',
    'mkdir -p /run/netns',
    'mount -t sysfs lateen /sys',
    'ip link set lo up',
  ]
}

/** The inner side: connections that come by the socket go to the API server. */
export async function serveApiSocket(stateDir: string, port: number): Promise<AsyncDisposable> {
  await rm(apiSocket(stateDir), { force: true })
  return listenBridge({ path: apiSocket(stateDir) }, { host: '127.0.0.1', port })
}

async function listenBridge(from: net.ListenOptions, to: net.NetConnectOpts): Promise<AsyncDisposable> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    const onward = net.connect({ ...to, allowHalfOpen: true })
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroySoon()
      })
    }
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(from, resolve)
  await promise
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
