// Small meshes for tests of the node proxy, in the local file's format.
import { createMeshState, type MeshState, parseLocalFile } from '../../src/ztunnel/state/index.ts'

/** A mesh with the content of a local file; `node` limits what counts as local. */
export function meshOf(text: string, node?: string): MeshState {
  const state = createMeshState(node === undefined ? {} : { node })
  state.replace(parseLocalFile(text))
  return state
}
