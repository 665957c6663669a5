// Carries enrolments out: rules in the pod, the proxy told, probes let through, the pod annotated. In that order, and undone in reverse.
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { type NetworkNamespace, openNetworkNamespace } from '../../linux/index.ts'
import { podOverrides, type Redirector } from '../../redirect/index.ts'
import { redirectionAnnotation } from '../eligibility.ts'
import type { Enrollment } from './controller.ts'
import { podIps } from './decide.ts'
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

export interface PodEnrollment extends Enrollment {
  /** The same as enroll, with what the plugin knows of a pod that is being set up. */
  enrollFromPlugin(pod: Pod, netnsPath: string, ips: readonly string[]): Promise<void>
  /** The pods a proxy has to be told of. */
  served(): ServedPod[]
  /** The proxies to tell; set once the server listens. */
  useProxies(proxies: ZdsServer): void
}

export function createEnrollment(options: EnrollmentOptions): PodEnrollment {
  const { redirector, client, log } = options
  const pods = new Map<string, ServedPod>()
  const busy = new Map<string, Promise<unknown>>()
  let proxies: ZdsServer | undefined

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

  const remember = (pod: Pod, netns?: NetworkNamespace): ServedPod => {
    const { uid = '', name = '', namespace = '' } = pod.metadata ?? {}
    const known = pods.get(uid)
    const handle = sameNamespace(known?.netns, netns) ?? netns ?? known?.netns
    if (known?.netns !== undefined && known.netns !== handle) known.netns[Symbol.dispose]()
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
    const uid = pod.metadata?.uid ?? ''
    remember(pod)
    let served: ServedPod
    let netns: NetworkNamespace
    try {
      served = remember(pod, await open())
      if (served.netns === undefined) throw new Error('its network namespace is not known')
      netns = served.netns
      await program(pod, netns)
    } catch (error) {
      forget(uid)
      throw new EnrollmentError((error as Error).message, { cause: error })
    }
    try {
      if (proxies === undefined) throw new Error('the node agent is still starting')
      await proxies.add({ ...served, netns })
    } catch (error) {
      await annotate(pod, 'pending').catch((cause: Error) => log('warn', `pod ${keyOf(pod)}: ${cause.message}`))
      throw error
    }
    await redirector.probeSet.add(ips.map((ip) => ({ ip, uid })))
    await annotate(pod, 'enabled')
    log('info', `pod ${keyOf(pod)}: captured`)
  }

  const find = async (pod: Pod): Promise<NetworkNamespace> => {
    const uid = pod.metadata?.uid ?? ''
    const netns = (await options.findNamespaces(new Map([[uid, podIps(pod)]]))).get(uid)
    if (netns === undefined) throw new Error('no process with its network namespace was found on this node')
    return netns
  }

  return {
    useProxies: (server) => {
      proxies = server
    },
    served: () => [...pods.values()],
    enroll: (pod) =>
      serially(pod.metadata?.uid ?? '', () =>
        enroll(pod, async () => pods.get(pod.metadata?.uid ?? '')?.netns ?? find(pod), podIps(pod)),
      ),
    enrollFromPlugin: (pod, netnsPath, ips) =>
      serially(pod.metadata?.uid ?? '', () => enroll(pod, async () => openNetworkNamespace(netnsPath), ips)),
    addToHostSet: (pod, ips) => redirector.probeSet.add(ips.map((ip) => ({ ip, uid: pod.metadata?.uid ?? '' }))),
    unenroll: (pod, isDelete, ips) =>
      serially(pod.metadata?.uid ?? '', async () => {
        const uid = pod.metadata?.uid ?? ''
        await redirector.probeSet.remove(ips.map((ip) => ({ ip, uid })))
        const netns = pods.get(uid)?.netns
        // The handle is kept until the rules are really gone: it is the only way to them.
        if (!isDelete && netns !== undefined) await redirector.unprogramPod(pathOf(netns))
        if (!isDelete && netns === undefined)
          log('warn', `pod ${keyOf(pod)}: its rules stay: its network namespace is not known`)
        await proxies?.remove(uid)
        forget(uid)
        try {
          await annotate(pod, null)
        } catch (error) {
          if (!isDelete && (error as { code?: number }).code !== 404) throw error
        }
        log('info', `pod ${keyOf(pod)}: no longer captured`)
      }),
    restore: async (enrolled) => {
      const byUid = new Map(enrolled.map((pod) => [pod.metadata?.uid ?? '', podIps(pod)]))
      const namespaces = await options.findNamespaces(byUid)
      for (const pod of enrolled) {
        const netns = namespaces.get(pod.metadata?.uid ?? '')
        remember(pod, netns)
        if (netns === undefined)
          log('warn', `pod ${keyOf(pod)}: its network namespace was not found; a proxy that serves it keeps it`)
        if (netns === undefined || !options.reconcile) continue
        await program(pod, netns).catch((error: Error) => log('warn', `pod ${keyOf(pod)}: ${error.message}`))
      }
      const entries = enrolled.flatMap((pod) => podIps(pod).map((ip) => ({ ip, uid: pod.metadata?.uid ?? '' })))
      const complete = enrolled.every((pod) => podIps(pod).length > 0)
      await (complete ? redirector.probeSet.sync(entries) : redirector.probeSet.add(entries))
    },
  }
}

function keyOf(pod: Pod): string {
  return `${pod.metadata?.namespace}/${pod.metadata?.name}`
}

/** The namespace's file as a child process can open it. */
function pathOf(netns: NetworkNamespace): string {
  return `/proc/${process.pid}/fd/${netns.fd}`
}

/** The old handle when both are of one namespace: the new one is closed then. */
function sameNamespace(
  old: NetworkNamespace | undefined,
  now: NetworkNamespace | undefined,
): NetworkNamespace | undefined {
  if (old === undefined || now === undefined || old === now) return old ?? now
  if (old.inode !== now.inode || old.device !== now.device) return undefined
  now[Symbol.dispose]()
  return old
}
