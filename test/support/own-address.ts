// An address by which others on the network of this machine would reach it.
import { networkInterfaces } from 'node:os'

/** IPv4; undefined where there is no network. */
export const ownAddress: string | undefined = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
