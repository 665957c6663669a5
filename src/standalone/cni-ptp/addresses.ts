// Addresses of a range given to containers: one file for each address, as the plugin host-local keeps them.
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { addressAt, parseCidr } from '../network/cidr.ts'

const fileOfAddress = /^\d+\.\d+\.\d+\.\d+$/

/** The first address of the subnet is the gateway's, the last one is for broadcasts. */
export function gatewayOf(subnet: string): string {
  return addressAt(parseCidr(subnet), 1)
}

/** The owner's address, or the next free one. @throws Error when all are taken */
export async function allocateAddress(directory: string, subnet: string, owner: string): Promise<string> {
  await mkdir(directory, { recursive: true })
  for (const name of await readdir(directory)) if (await isOwner(directory, name, owner)) return name
  const range = parseCidr(subnet)
  const last = 2 ** (32 - range.prefix) - 2
  for (let index = 2; index <= last; index += 1) {
    const address = addressAt(range, index)
    try {
      // The file is made only if there is none: two calls never get the same address.
      const file = await open(join(directory, address), 'wx')
      await file.writeFile(owner)
      await file.close()
      return address
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`all addresses of ${subnet} are taken`)
}

export async function releaseAddress(directory: string, owner: string): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  for (const name of names) if (await isOwner(directory, name, owner)) await rm(join(directory, name), { force: true })
}

async function isOwner(directory: string, name: string, owner: string): Promise<boolean> {
  return fileOfAddress.test(name) && (await readFile(join(directory, name), 'utf8').catch(() => '')) === owner
}
