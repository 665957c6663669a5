// The port of the API server on this machine: one that nobody uses, and that no other instance that is just starting takes too.
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readJson, writeFileAtomic } from './files.ts'

export interface ReservedPort extends AsyncDisposable {
  readonly port: number
}

const preferred = 6443
const others = Array.from({ length: 50 }, (_, index) => 16443 + index)

/**
 * The port of the last time while it is free, so that kubeconfig files stay good; else the usual one; else another. Other instances
 * leave it alone until the reservation is disposed.
 */
export async function reserveApiPort(stateDir: string): Promise<ReservedPort> {
  const file = join(stateDir, 'port.json')
  const before = await readJson<number>(file)
  for (const port of [...(before === undefined ? [] : [before]), preferred, ...others]) {
    const reservation = await reserve(port)
    if (reservation === undefined) continue
    await writeFileAtomic(file, JSON.stringify(port))
    return { port, [Symbol.asyncDispose]: () => closed(reservation) }
  }
  throw new StandaloneError(
    'PORT_IN_USE',
    `no free port for the API server: ${preferred} and ${others[0]} to ${others.at(-1)} of 127.0.0.1 are all in use`,
  )
}

async function reserve(port: number): Promise<Server | undefined> {
  // An abstract socket: one owner at a time, and gone with the process, however it ends.
  const claim = await listening({ path: `\0lateen-api-port-${port}` })
  if (claim === undefined) return undefined
  const probe = await listening({ host: '127.0.0.1', port })
  if (probe === undefined) {
    await closed(claim)
    return undefined
  }
  await closed(probe)
  claim.unref()
  return claim
}

function listening(where: { path: string } | { host: string; port: number }): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>()
  const server = createServer((socket) => socket.destroy())
  server.once('error', () => resolve(undefined))
  server.listen(where, () => resolve(server))
  return promise
}

async function closed(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve))
}
