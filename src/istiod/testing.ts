// For tests: clients as a control plane holds them, and what its debug pages are about.
import assert from 'node:assert/strict'
import { createGraph } from '../collections/index.ts'
import { createProblemLog } from '../config/index.ts'
import { createAmbientIndex, createAmbientInputs, defaultAmbientSettings } from '../discovery/ambient/index.ts'
import type { Connection } from '../xds/index.ts'
import type { DebugSources } from './debug.ts'

/** A sidecar `web` of the namespace that watches nothing. */
export const proxyOf = (namespace: string, number = 1, identities: readonly string[] = []): Connection => ({
  id: `web.${namespace}-${number}`,
  node: { id: 'n', type: 'sidecar', ips: [], proxyId: `web.${namespace}`, namespace, locality: '', metadata: {} },
  identities,
  peer: '',
  connectedAt: new Date(),
  watches: new Map(),
  receive: () => {},
  push: () => {},
  resend: () => {},
  recall: () => {},
  close: () => {},
})

/** Of a mesh without content. */
export function debugSourcesOf(changes: Partial<DebugSources> = {}): DebugSources {
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  const inputs = createAmbientInputs(graph)
  return {
    connections: () => [],
    graph,
    inputs,
    others: [],
    index: createAmbientIndex({ inputs, settings: defaultAmbientSettings }),
    sources: [],
    meshConfig: () => ({}),
    meshNetworks: () => ({}),
    remoteClusters: () => [],
    revision: () => ({ revision: 'default', tags: [] }),
    problems: createProblemLog(),
    clusterId: 'Kubernetes',
    version: 'test',
    pushAll: () => {},
    disconnect: undefined,
    ...changes,
  }
}
