// The mesh on a thread that only reads it.
import { openSharedTables } from '../../shared-memory/index.ts'
import type { MeshFollower, MeshPublication } from './follower.ts'
import { createFollowing } from './following.ts'
import { createMeshView } from './mesh-view.ts'
import type { MeshMemory } from './store.ts'

export interface MeshReader extends MeshFollower {
  /** Moves to the state of a push, when no other code runs, and then tells the listeners. */
  advance(publication: MeshPublication): void
}

/** `reader`: a number below the `readers` of the state, used by no other thread. It begins at the newest push. */
export function openMeshReader(memory: MeshMemory, reader: number): MeshReader {
  const tables = openSharedTables(memory, reader)
  const view = createMeshView(tables)
  const following = createFollowing(view)
  return {
    ...view,
    onChange: following.onChange,
    waitForLocalWorkload: following.waitForLocalWorkload,
    advance(publication) {
      if (publication.generation <= tables.generation) return
      tables.advance(publication)
      following.signal(publication.signal)
    },
  }
}
