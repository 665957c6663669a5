// The mesh as the data plane follows it: the same on the thread that writes it and on those that only read.
import type { PodInfo, Workload } from '../model.ts'
import type { MeshView } from './view.ts'

/** What kinds of things one push changed. */
export interface MeshSignal {
  readonly workloads: boolean
  readonly services: boolean
  readonly policies: boolean
}

export interface WaitOptions {
  /** 5,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** A view that moves from one push to the next, never in the middle of a run of code. */
export interface MeshFollower extends MeshView {
  /** Calls the listener after each push, when the new state is in place. Returns the function that ends it. */
  onChange(listener: (signal: MeshSignal) => void): () => void
  /** The workload of a pod of this node, waiting for it to arrive. Rejects with a StateError that names it. */
  waitForLocalWorkload(pod: PodInfo, options?: WaitOptions): Promise<Workload>
}

/** Told to every reading thread after a push. It can be posted. */
export interface MeshPublication {
  /** Grows by one a push. */
  readonly generation: number
  /** Where the state of this generation begins in the shared memory. */
  readonly root: number
  readonly signal: MeshSignal
}
