// Prepares one container of a pod for its start: variables, volumes, name files, and the plan that follows from them.
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ContainerPlan, planContainer } from './container-plan.ts'
import { containerEnvironment, type EnvironmentSources } from './environment.ts'
import type { Mount } from './mounts.ts'
import { formatResolvConf, hostAliases, podHostname, podHosts, podResolver } from './name-files.ts'
import type { NodeContext } from './node-context.ts'
import type { Sandbox } from './sandbox.ts'
import type { Container, Pod } from './types.ts'
import type { VolumeSources } from './volume-files.ts'
import { containerMounts, prepareVolumes } from './volumes.ts'

export interface PodPlace {
  readonly pod: Pod
  readonly directory: string
  readonly sandbox: Sandbox | undefined
  readonly podIPs: readonly string[]
}

export function sourcesOf(context: NodeContext, place: PodPlace): EnvironmentSources & VolumeSources {
  const namespace = place.pod.metadata.namespace ?? ''
  return {
    pod: place.pod,
    nodeName: context.nodeName,
    hostIPs: context.nodeIPs,
    podIPs: place.podIPs,
    services: context.services(),
    resources: context.resources,
    configMap: (name) => context.objects.configMap(namespace, name),
    secret: (name) => context.objects.secret(namespace, name),
    trustBundles: () => context.objects.trustBundles(),
    token: (audience, seconds) => context.tokens.token(place.pod, audience, seconds),
  }
}

/** Makes or refreshes the pod's volumes and name files. @throws ConfigError when something they need is missing. */
export async function preparePod(context: NodeContext, place: PodPlace): Promise<Map<string, string>> {
  const { pod, directory } = place
  const volumes = await prepareVolumes(pod.spec ?? { containers: [] }, directory, sourcesOf(context, place))
  await writeNameFile(
    join(directory, 'resolv.conf'),
    formatResolvConf(podResolver(pod, context.cluster, context.hostResolver())),
  )
  const hosts = pod.spec?.hostNetwork
    ? `${await readFile('/etc/hosts', 'utf8').catch(() => '127.0.0.1\tlocalhost\n')}${hostAliases(pod).join('\n')}`
    : podHosts(pod, place.podIPs, context.cluster.domain)
  await writeNameFile(join(directory, 'hosts'), hosts)
  return volumes
}

/** In place: the file is bound into running containers, a new one would not be seen there. */
async function writeNameFile(path: string, text: string): Promise<void> {
  if (existsSync(path) && (await readFile(path, 'utf8')) === text) return
  await writeFile(path, text, { mode: 0o644 })
}

/** @throws ConfigError when the container cannot be run as it stands. */
export async function planPodContainer(
  context: NodeContext,
  place: PodPlace,
  container: Container,
  volumes: ReadonlyMap<string, string>,
): Promise<ContainerPlan> {
  const { pod, directory, sandbox } = place
  const spec = pod.spec ?? { containers: [] }
  const environment = containerEnvironment(container, sourcesOf(context, place))
  const mounts = [
    ...(await containerMounts(container, volumes, environment)),
    { source: join(directory, 'resolv.conf'), target: '/etc/resolv.conf', readOnly: false },
    { source: join(directory, 'hosts'), target: '/etc/hosts', readOnly: false },
    await terminationMount(directory, container),
  ]
  const own = new Set((container.volumeMounts ?? []).map((mount) => mount.mountPath))
  return planContainer(spec, container, {
    environment,
    mounts: mounts.filter((mount, index) => index < own.size || !own.has(mount.target)),
    hostname: podHostname(pod, context.nodeName),
    path: context.path,
    ...(sandbox && { networkNamespace: sandbox.namespacePath }),
  })
}

async function terminationMount(directory: string, container: Container): Promise<Mount> {
  const source = join(directory, 'containers', container.name, 'termination-message')
  await mkdir(join(directory, 'containers', container.name), { recursive: true })
  await writeFile(source, '')
  // Whatever user the container runs as, and whatever the umask here.
  await chmod(source, 0o666)
  return { source, target: container.terminationMessagePath ?? '/dev/termination-log', readOnly: false }
}
