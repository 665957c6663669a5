// Carries enrolments out: rules in the pod, the proxy told, probes let through, the pod annotated. In that order, and undone in reverse.
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type KubeObject, resources } from '../../api/index.ts'
import { isKubeError, type KubeClient } from '../../kube/index.ts'
import { type NetworkNamespace, openNetworkNamespace } from '../../linux/index.ts'
import { podOverrides, type Redirector } from '../../redirect/index.ts'
import { redirectionAnnotation } from '../eligibility.ts'
import type { Enrollment } from './controller.ts'
import { isPartial, podIps } from './decide.ts'
import type { ServedPod, ZdsServer } from './zds-server.ts'

export interface EnrollmentOptions {
  readonly redirector: Redirector
  readonly client: KubeClient
  readonly findNamespaces: (pods: ReadonlyMap<string, readonly string[]>) => Promise<Map<string, NetworkNamespace>>
  /** Program pods of an earlier agent again at start. */
  readonly reconcile: boolean
  readonly log: (level: 'info' | 'warn', message: string) => void
}

/** An enrolment that repeating does not mend. */
export class EnrollmentError extends Error {
  readonly code = 'ENROLLMENT_FAILED'
  readonly retryable = false
}

/** Owns the handles of the pods' network namespaces: disposing closes them. */
export interface PodEnrollment extends Enrollment, Disposable {
  /** The same as enroll, with what the plugin knows of a pod that is being set up. */
  enrollFromPlugin(pod: Pod, netnsPath: string, ips: readonly string[]): Promise<void>
  /** The pods a proxy has to be told of, by UID. */
  readonly served: ReadonlyMap<string, ServedPod>
  /** The proxies to tell; set once the server listens. */
  useProxies(proxies: Pick<ZdsServer, 'add' | 'remove'>): void
}

export function createEnrollment(options: EnrollmentOptions): PodEnrollment {
  const { redirector, client, log } = options
  const pods = new Map<string, ServedPod>()
  const busy = new Map<string, Promise<unknown>>()
  let proxies: Pick<ZdsServer, 'add' | 'remove'> | undefined

  /** The plugin and the watch may work on the same pod: one after the other. */
  const serially = <T>(uid: string, work: () => Promise<T>): Promise<T> => {
    const before = busy.get(uid) ?? Promise.resolve()
    const next = before.catch(() => undefined).then(work)
    const settled = next
      .catch(() => undefined)
      .finally(() => {
        if (busy.get(uid) === settled) busy.delete(uid)
      })
    busy.set(uid, settled)
    return next
  }

  function remember(pod: Pod, netns: NetworkNamespace): ServedPod & { readonly netns: NetworkNamespace }
  function remember(pod: Pod, netns?: NetworkNamespace): ServedPod
  function remember(pod: Pod, netns?: NetworkNamespace): ServedPod {
    const { uid = '', name = '', namespace = '' } = pod.metadata ?? {}
    const known = pods.get(uid)?.netns
    const handle = known !== undefined && (netns === undefined || isSameNamespace(known, netns)) ? known : netns
    for (const unused of [known, netns]) if (unused !== handle) unused?.[Symbol.dispose]()
    const served: ServedPod = {
      uid,
      name,
      namespace,
      serviceAccount: pod.spec?.serviceAccountName || 'default',
      ...(handle === undefined ? {} : { netns: handle }),
    }
    pods.set(uid, served)
    return served
  }

  const forget = (uid: string): void => {
    pods.get(uid)?.netns?.[Symbol.dispose]()
    pods.delete(uid)
  }

  /** The UID makes the server refuse the change for another pod that has taken the name meanwhile. */
  const annotate = async (pod: Pod, value: 'enabled' | 'pending' | null): Promise<void> => {
    const { namespace = '', name = '', uid } = pod.metadata ?? {}
    const body = { metadata: { uid, annotations: { [redirectionAnnotation]: value } } }
    await client.patch<KubeObject>(
      resources.pods,
      { namespace, name },
      { kind: 'merge', body },
      { subresource: 'status' },
    )
  }

  const program = async (pod: Pod, netns: NetworkNamespace): Promise<void> => {
    const { overrides, warnings } = podOverrides(pod.metadata?.annotations ?? {})
    for (const { annotation, value, expected } of warnings) {
      log('warn', `pod ${keyOf(pod)}: annotation ${annotation}: "${value}" is ignored: expected ${expected}`)
    }
    await redirector.programPod(pathOf(netns), overrides)
  }

  const enroll = async (pod: Pod, open: () => Promise<NetworkNamespace>, ips: readonly string[]): Promise<void> => {
    const uid = uidOf(pod)
    const isNew = !pods.has(uid)
    // From here on a proxy that connects keeps the pod, whatever becomes of this attempt.
    remember(pod)
    let served: ServedPod & { readonly netns: NetworkNamespace }
    try {
      served = remember(pod, await open())
      await program(pod, served.netns)
    } catch (error) {
      if (isNew) forget(uid)
      throw new EnrollmentError((error as Error).message, { cause: error })
    }
    try {
      if (proxies === undefined) throw new Error('the node agent is still starting')
      await proxies.add(served)
    } catch (error) {
      if (!isPartial(pod)) {
        await annotate(pod, 'pending').catch((cause: Error) => log('warn', `pod ${keyOf(pod)}: ${cause.message}`))
      }
      throw error
    }
    await redirector.probeSet.add(ips.map((ip) => ({ ip, uid })))
    await annotate(pod, 'enabled')
    log('info', `pod ${keyOf(pod)}: captured`)
  }

  const find = async (pod: Pod): Promise<NetworkNamespace> => {
    const netns = (await options.findNamespaces(new Map([[uidOf(pod), podIps(pod)]]))).get(uidOf(pod))
    if (netns === undefined) throw new Error('no process with its network namespace was found on this node')
    return netns
  }

  const findOrWarn = async (pod: Pod): Promise<NetworkNamespace | undefined> => {
    try {
      return await find(pod)
    } catch (error) {
      log('warn', `pod ${keyOf(pod)}: its rules may stay: ${(error as Error).message}`)
      return undefined
    }
  }

  const unprogram = async (pod: Pod): Promise<void> => {
    const netns = pods.get(uidOf(pod))?.netns ?? (await findOrWarn(pod))
    if (netns === undefined) return
    remember(pod, netns)
    await redirector.unprogramPod(pathOf(netns))
  }

  return {
    useProxies: (server) => {
      proxies = server
    },
    served: pods,
    knows: (uid) => pods.has(uid),
    enroll: (pod) =>
      serially(uidOf(pod), () => enroll(pod, async () => pods.get(uidOf(pod))?.netns ?? find(pod), podIps(pod))),
    enrollFromPlugin: (pod, netnsPath, ips) =>
      serially(uidOf(pod), () => enroll(pod, async () => openNetworkNamespace(netnsPath), ips)),
    addToHostSet: (pod, ips) =>
      serially(uidOf(pod), () => redirector.probeSet.add(ips.map((ip) => ({ ip, uid: uidOf(pod) })))),
    unenroll: (pod, isDelete, ips) =>
      serially(uidOf(pod), async () => {
        const uid = uidOf(pod)
        await redirector.probeSet.remove(ips.map((ip) => ({ ip, uid })))
        // The handle is kept until the rules are really gone: it is the only sure way to them.
        if (!isDelete) await unprogram(pod)
        await proxies?.remove(uid)
        try {
          await annotate(pod, null)
        } catch (error) {
          if (!isDelete && !isKubeError(error, 404)) throw error
          if (!isKubeError(error, 404))
            log('warn', `pod ${keyOf(pod)}: its annotation stays: ${(error as Error).message}`)
        }
        forget(uid)
        log('info', `pod ${keyOf(pod)}: no longer captured`)
      }),
    restore: async (enrolled) => {
      const byUid = new Map(enrolled.map((pod) => [uidOf(pod), podIps(pod)]))
      const namespaces = await options.findNamespaces(byUid)
      for (const pod of enrolled) {
        const netns = namespaces.get(uidOf(pod))
        remember(pod, netns)
        if (netns === undefined)
          log('warn', `pod ${keyOf(pod)}: its network namespace was not found; a proxy that serves it keeps it`)
        if (netns === undefined || !options.reconcile) continue
        await program(pod, netns).catch((error: Error) => log('warn', `pod ${keyOf(pod)}: ${error.message}`))
      }
      const entries = enrolled.flatMap((pod) => podIps(pod).map((ip) => ({ ip, uid: uidOf(pod) })))
      const complete = enrolled.every((pod) => podIps(pod).length > 0)
      await (complete ? redirector.probeSet.sync(entries) : redirector.probeSet.add(entries))
    },
    [Symbol.dispose]: () => {
      for (const uid of [...pods.keys()]) forget(uid)
    },
  }
}

function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? ''
}

function keyOf(pod: Pod): string {
  return `${pod.metadata?.namespace}/${pod.metadata?.name}`
}

/** The namespace's file as a child process can open it. */
function pathOf(netns: NetworkNamespace): string {
  return `/proc/${process.pid}/fd/${netns.fd}`
}

function isSameNamespace(a: NetworkNamespace, b: NetworkNamespace): boolean {
  return a.inode === b.inode && a.device === b.device
}
