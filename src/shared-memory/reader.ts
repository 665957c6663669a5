// A thread that only reads: it holds the generation it stands on until it moves.
import { SharedMemoryError } from './errors.ts'
import { header, type Memory, openMemory, renewViews, type SharedMemoryHandle } from './memory.ts'
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
  const slot = header.slots + reader
  const at = hold(memory, slot)
  return Object.assign(createView(memory, at), {
    advance(to: { readonly generation: number; readonly root: number }) {
      if (to.generation <= at.generation) return
      // Also orders what was written before this generation before what is read now.
      if (Atomics.load(memory.words, header.generation) < to.generation) {
        throw new SharedMemoryError('INVALID_MEMORY', `generation ${to.generation} is not complete`)
      }
      renewViews(memory)
      at.root = to.root
      at.generation = to.generation
      Atomics.store(memory.words, slot, to.generation)
    },
  })
}

/** Takes hold of the newest generation: it counts only if it is still the newest once the writer can see who holds it. */
function hold(memory: Memory, slot: number): { generation: number; root: number } {
  for (;;) {
    const generation = Atomics.load(memory.words, header.generation)
    const root = Atomics.load(memory.words, header.roots + (generation & 1))
    Atomics.store(memory.words, slot, generation)
    if (Atomics.load(memory.words, header.generation) !== generation) continue
    renewViews(memory)
    return { generation, root }
  }
}
