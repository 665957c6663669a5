// The port of the API server on this machine: one that nobody uses, and that no other instance that is just starting takes too.
import { createServer } from 'node:net'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readJson, writeFileAtomic } from './files.ts'
import { holdName } from './instance-lock.ts'

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
    return { port, [Symbol.asyncDispose]: () => reservation[Symbol.asyncDispose]() }
  }
  throw new StandaloneError(
    'PORT_IN_USE',
    `no free port for the API server: ${preferred} and ${others[0]} to ${others.at(-1)} of 127.0.0.1 are all in use`,
  )
}

async function reserve(port: number): Promise<AsyncDisposable | undefined> {
  const claim = await holdName(`lateen-api-port-${port}`)
  if (claim === undefined) return undefined
  if (await isFree(port)) return claim
  await claim[Symbol.asyncDispose]()
  return undefined
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
