// Manifests of pods that run the talking program, and of services for them.
import { join } from 'node:path'
import { talk } from './mesh-pod.ts'

export const podProgram: readonly string[] = [process.execPath, join(import.meta.dirname, 'mesh-pod.ts')]

export interface PodWish {
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Fields of the spec. */
  readonly spec?: Readonly<Record<string, unknown>>
  /** What the program does, if not to serve. */
  readonly words?: readonly string[]
}

/** One document of a manifest: a pod that serves, or does as asked. */
export function podManifest(name: string, node: string, { namespace, labels, spec, words }: PodWish = {}): string {
  return document({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(namespace && { namespace }), labels: { app: name, ...labels } },
    spec: { nodeName: node, ...podSpec(words), ...spec },
  })
}

export function podSpec(words?: readonly string[]): Record<string, unknown> {
  return {
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: 'c',
        image: 'host',
        command: [...podProgram, ...(words ?? ['serve'])],
        env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        ...(words === undefined && { readinessProbe: { tcpSocket: { port: talk.echo }, periodSeconds: 1 } }),
      },
    ],
  }
}

/** A service with every port of the program. */
export function serviceManifest(name: string, app: string, spec: Readonly<Record<string, unknown>> = {}): string {
  const ports = Object.entries(talk).map(([port, number]) => ({
    name: port === 'http' ? 'http' : `${port === 'udp' ? 'udp' : 'tcp'}-${port}`,
    port: number,
    protocol: port === 'udp' ? 'UDP' : 'TCP',
  }))
  return document({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app }, ports, ...spec },
  })
}

export function namespaceManifest(name: string, labels: Readonly<Record<string, string>> = {}): string {
  return document({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
}

export const inMesh = { 'istio.io/dataplane-mode': 'ambient' } as const

/** JSON is YAML. */
export function document(object: unknown): string {
  return `---\n${JSON.stringify(object)}\n`
}
