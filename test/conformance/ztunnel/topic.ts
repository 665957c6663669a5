// What the topics of the suite share: the shape of a file, and a mesh state from the local configuration format.

import type { SocketAddress } from '../../../src/ztunnel/model.ts'
import {
  createMeshState,
  type MeshState,
  parseLocalFile,
  parseSocketAddress,
} from '../../../src/ztunnel/state/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: test data of many shapes, read where its shape is known
export type Data = any

export interface SuiteFile {
  readonly topic: string
  readonly defaults?: Data
  readonly cases: readonly Data[]
}

export type TopicRunner = (one: Data, defaults: Data) => void | Promise<void>

/** A mesh with the given parts, in order; missing lists are empty. */
export function meshOf(node: string | undefined, ...parts: readonly Data[]): MeshState {
  const state = createMeshState(node === undefined ? {} : { node })
  const joined = { workloads: [] as Data[], services: [] as Data[], policies: [] as Data[] }
  for (const part of parts) {
    for (const key of ['workloads', 'services', 'policies'] as const) joined[key].push(...(part?.[key] ?? []))
  }
  state.replace(parseLocalFile(JSON.stringify(joined)))
  return state
}

export function socketAddress(text: string): SocketAddress {
  const address = parseSocketAddress(text)
  if (address === undefined) throw new Error(`not an address: ${text}`)
  return address
}

/** Random numbers that are the same in every run. */
export function seededRandom(seed = 1): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}
