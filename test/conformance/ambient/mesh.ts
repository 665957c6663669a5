// A mesh of given objects for the suites of the ambient index: applies manifests and reads what the index computes.
import { readFileSync } from 'node:fs'
import { parse, parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../../src/api/index.ts'
import { createGraph } from '../../../src/collections/index.ts'
import { inputsByKind } from '../../../src/discovery/ambient/testing.ts'
import {
  type AmbientIndex,
  type AmbientMeshConfig,
  type AmbientSettings,
  createAmbientIndex,
  createAmbientInputs,
  defaultAmbientSettings,
} from '../../../src/discovery/index.ts'

export interface Mesh {
  readonly index: AmbientIndex
  /** Applies and deletes in one wave. Deletions are written `Kind/namespace/name`. */
  change(apply: Record<string, readonly KubeObject[]>, remove: Record<string, readonly string[]>): void
}

export function createMesh(
  settings: Partial<AmbientSettings>,
  flags: Readonly<Record<string, unknown>>,
  meshConfig: AmbientMeshConfig,
): Mesh {
  const graph = createGraph({
    report: (report) => {
      if (report.kind !== 'duplicate-key') throw new Error(`unexpected report: ${JSON.stringify(report)}`)
    },
  })
  const inputs = createAmbientInputs(graph)
  const all = { ...defaultAmbientSettings, ...settings, ...settingsOfFlags(flags) }
  const index = createAmbientIndex({ inputs, settings: all })
  const feed = (cluster: string, kind: string) => {
    const known = inputsByKind[kind]
    if (known === undefined) throw new Error(`no feed for kind ${kind}`)
    return inputs.feed(cluster, known)
  }
  inputs.meshConfig.set(meshConfig)
  for (const [name, controllerName] of [
    ['istio-waypoint', 'istio.io/mesh-controller'],
    ['istio-east-west', 'istio.io/mesh-controller'],
    ['istio-remote', 'istio.io/unmanaged-gateway'],
  ] as const) {
    inputs.feed(all.clusterId, 'gatewayClasses').set({
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'GatewayClass',
      metadata: { name },
      spec: { controllerName },
    })
  }
  inputs.markSynced()
  return {
    index,
    change: (apply, remove) =>
      graph.transaction(() => {
        for (const [cluster, objects] of Object.entries(apply)) {
          for (const object of objects) feed(cluster, object.kind).set(object as never)
        }
        for (const [cluster, names] of Object.entries(remove)) {
          for (const text of names) {
            const [kind = '', namespace = '', name = ''] = text.split('/')
            feed(cluster, kind).delete(namespace === '' ? { name } : { namespace, name })
          }
        }
      }),
  }
}

export function readYaml<T>(path: string): T {
  return parse(readFileSync(path, 'utf8')) as T
}

export function readObjects(path: string): KubeObject[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).flatMap((document) => {
    const object = document.toJS() as KubeObject | null
    return object === null ? [] : [object]
  })
}

function settingsOfFlags(flags: Readonly<Record<string, unknown>>): Partial<AmbientSettings> {
  const names: Readonly<Record<string, keyof AmbientSettings>> = {
    AMBIENT_ENABLE_MULTI_NETWORK: 'multiNetwork',
    AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY: 'dryRunPolicies',
    PILOT_AUTO_ALLOW_WAYPOINT_POLICY: 'autoAllowWaypoints',
    PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: 'serviceEntriesSelectPods',
    PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES: 'servicesSelectWorkloadEntries',
    PILOT_ENABLE_IP_AUTOALLOCATE: 'allocateAddresses',
  }
  const settings = Object.entries(flags).map(([flag, value]) => {
    const name = names[flag]
    if (name === undefined) throw new Error(`flag ${flag} has no setting`)
    return [name, value === true || value === 'true']
  })
  return Object.fromEntries(settings)
}
