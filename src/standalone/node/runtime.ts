// The pods of one node: a worker for each pod that the API assigns to it, and the end of those it no longer knows.
import { join } from 'node:path'
import { resources } from '../../api/index.ts'
import { readJson } from '../files.ts'
import type { NodeContext } from './node-context.ts'
import { knownPods, removePodFiles } from './pod-files.ts'
import { PodWorker } from './pod-worker.ts'
import { loadSandbox, removeSandbox } from './sandbox.ts'
import type { Pod } from './types.ts'

export interface PodRuntime extends AsyncDisposable {
  /** Resolves when the pods of the API and those found on the node have been matched. */
  readonly ready: Promise<void>
  /** Resolves when the API knows the state of all pods that were there at the start. */
  readonly reported: Promise<void>
  pods(): PodWorker[]
  find(namespace: string, name: string, uid?: string): PodWorker | undefined
}

export function startPodRuntime(context: NodeContext): PodRuntime {
  const workers = new Map<string, PodWorker>()
  const informer = context.client.informer<Pod>(resources.pods, {
    fieldSelector: `spec.nodeName=${context.nodeName}`,
  })

  const take = (pod: Pod) => {
    const uid = pod.metadata.uid ?? ''
    const worker = workers.get(uid)
    if (worker !== undefined) {
      worker.update(pod)
      return
    }
    const created = new PodWorker(context, pod)
    workers.set(uid, created)
    void created.ended.then(() => workers.delete(uid))
    created.kick()
  }

  const ready = informer.synced.then(async () => {
    const assigned = new Set(informer.list().map((pod) => pod.metadata.uid))
    for (const uid of await knownPods(context.podsDirectory)) {
      if (!assigned.has(uid)) await discardPod(context, uid)
    }
    informer.subscribe((changes) => {
      for (const change of changes) {
        if (change.kind === 'deleted') workers.get(change.object.metadata.uid ?? '')?.update(undefined)
        else if (change.kind === 'updated' && change.old.metadata.uid !== change.object.metadata.uid) {
          workers.get(change.old.metadata.uid ?? '')?.update(undefined)
          take(change.object)
        } else take(change.object)
      }
    })
  })

  const reported = ready.then(async () => {
    await Promise.all([...workers.values()].map((worker) => worker.reported))
  })

  return {
    ready,
    reported,
    pods: () => [...workers.values()],
    find: (namespace, name, uid) =>
      [...workers.values()].find(
        ({ pod: { metadata } }) =>
          metadata.namespace === namespace &&
          metadata.name === name &&
          (uid === undefined || uid === '' || metadata.uid === uid),
      ),
    async [Symbol.asyncDispose]() {
      await informer[Symbol.asyncDispose]()
      await Promise.all([...workers.values()].map((worker) => worker[Symbol.asyncDispose]()))
    },
  }
}

/** Ends what is left of a pod that the API does not assign to this node any more. */
export async function discardPod(context: NodeContext, uid: string): Promise<void> {
  const directory = join(context.podsDirectory, uid)
  const record = await readJson<{ pod: Pod }>(join(directory, 'pod.json'))
  if (record !== undefined) {
    const worker = new PodWorker(context, record.pod)
    worker.update(undefined)
    await worker.ended
    return
  }
  const sandbox = await loadSandbox(directory)
  if (sandbox !== undefined) await removeSandbox(sandbox, context.sandbox)
  await removePodFiles(directory, context.cgroupRoot, context.nodeName, uid)
}
