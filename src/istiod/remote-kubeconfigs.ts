// The kubeconfigs of remote clusters, followed: from Secrets, or from a file or directory.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubeObject, resources } from '../api/index.ts'
import { clusterOfText, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'

export interface RemoteKubeconfig {
  readonly clusterId: string
  /** `<namespace>/<name>` of the Secret, or the path of the file. */
  readonly origin: string
  readonly text: string
}

export interface RemoteKubeconfigs extends AsyncDisposable {
  /** Resolves when they have been read once. */
  readonly synced: Promise<void>
  /** In the order in which they count. */
  list(): readonly RemoteKubeconfig[]
  /** Calls the listener when they may have changed, and once at the start when there are any. */
  subscribe(listener: () => void): () => void
}

interface Secret extends KubeObject {
  data?: Record<string, string>
}

const label = 'istio/multiCluster=true'
const rereadMs = 1_000

/** Of each labelled Secret every key is a cluster. */
export function kubeconfigsOfSecrets(client: KubeClient, namespace: string): RemoteKubeconfigs {
  const secrets = client.informer<Secret>(resources.secrets, { namespace, labelSelector: label })
  return {
    synced: secrets.synced,
    list: () =>
      secrets
        .list()
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        .flatMap(({ metadata, data = {} }) =>
          Object.entries(data).map(([clusterId, encoded]) => ({
            clusterId,
            origin: `${metadata.namespace ?? ''}/${metadata.name}`,
            text: Buffer.from(encoded, 'base64').toString('utf8'),
          })),
        ),
    subscribe: (listener) => secrets.subscribe(() => listener()),
    [Symbol.asyncDispose]: () => secrets[Symbol.asyncDispose](),
  }
}

/** Each file is one cluster, whose id is the name by which the kubeconfig calls it. What cannot be read stays as it was. */
export function kubeconfigsOfPath(path: string, log: Scope): RemoteKubeconfigs {
  const listeners = new Set<() => void>()
  const stop = new AbortController()
  const held = new Map<string, RemoteKubeconfig>()
  const complaints = new Map<string, string>()
  const first = Promise.withResolvers<void>()
  const done = follow()

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      const isChanged = await reread()
      first.resolve()
      if (isChanged) for (const listener of [...listeners]) listener()
      try {
        await sleep(rereadMs, undefined, { signal: stop.signal, ref: false })
      } catch {
        return
      }
    }
  }

  async function reread(): Promise<boolean> {
    const files = filesOf(path)
    if (typeof files === 'string') {
      complain(path, files)
      return false
    }
    let isChanged = false
    for (const file of held.keys()) if (!files.has(file)) isChanged = held.delete(file)
    for (const [file, text] of files) {
      if (held.get(file)?.text === text) continue
      try {
        held.set(file, { clusterId: await clusterOfText(text, file), origin: file, text })
        complaints.delete(file)
        isChanged = true
      } catch (error) {
        complain(file, textOf(error))
      }
    }
    return isChanged
  }

  function complain(file: string, reason: string): void {
    if (complaints.get(file) === reason) return
    complaints.set(file, reason)
    log.error('a kubeconfig of a remote cluster cannot be read', { file, reason })
  }

  return {
    synced: first.promise,
    list: () => [...held.values()].sort((a, b) => (a.origin < b.origin ? -1 : 1)),
    subscribe(listener) {
      listeners.add(listener)
      if (held.size > 0) listener()
      return () => listeners.delete(listener)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await done
    },
  }
}

/** Contents by path, or why there are none. Names with a leading dot are not looked at: mounted Secrets keep their versions there. */
function filesOf(path: string): ReadonlyMap<string, string> | string {
  try {
    if (!statSync(path).isDirectory()) return new Map([[path, readFileSync(path, 'utf8')]])
    const files = readdirSync(path)
      .filter((name) => !name.startsWith('.'))
      .map((name) => join(path, name))
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile())
    return new Map(files.map((file) => [file, readFileSync(file, 'utf8')]))
  } catch (error) {
    return textOf(error)
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
