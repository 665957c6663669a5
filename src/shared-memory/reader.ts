// A thread that only reads: it holds the generation it stands on until it moves.
import { SharedMemoryError } from './errors.ts'
import {
  header,
  loadGeneration,
  longs,
  type Memory,
  openMemory,
  renewViews,
  rootPlace,
  type SharedMemoryHandle,
  storeGeneration,
} from './memory.ts'
import { createView, type TableView } from './snapshot.ts'

export interface TableReader extends TableView {
  /** Moves to a generation that the writer has told of; one that is not newer is ignored. */
  advance(to: { readonly generation: number; readonly root: number }): void
}

/** `reader`: one of the numbers below that given to the writer, used by no other thread. Throws a SharedMemoryError. */
export function openSharedTables(handle: SharedMemoryHandle, reader: number): TableReader {
  const memory = openMemory(handle)
  if (!Number.isInteger(reader) || reader < 0 || reader >= (memory.words[header.readers] as number)) {
    throw new SharedMemoryError('INVALID_MEMORY', `the shared memory has no place for reader ${reader}`)
  }
  const slot = longs.slots + reader
  const at = hold(memory, slot)
  return Object.assign(createView(memory, at), {
    advance(to: { readonly generation: number; readonly root: number }) {
      if (to.generation <= at.generation) return
      // Also orders what was written before this generation before what is read now.
      if (loadGeneration(memory, longs.generation) < to.generation) {
        throw new SharedMemoryError('INVALID_MEMORY', `generation ${to.generation} is not complete`)
      }
      renewViews(memory)
      at.root = to.root
      at.generation = to.generation
      storeGeneration(memory, slot, to.generation)
    },
  })
}

/** Takes hold of the newest generation: it counts only if it is still the newest once the writer can see who holds it. */
function hold(memory: Memory, slot: number): { generation: number; root: number } {
  for (;;) {
    const generation = loadGeneration(memory, longs.generation)
    const root = Atomics.load(memory.words, rootPlace(generation))
    storeGeneration(memory, slot, generation)
    if (loadGeneration(memory, longs.generation) !== generation) continue
    renewViews(memory)
    return { generation, root }
  }
}
