// The static configuration file: workloads, services and policies as YAML or JSON, instead of a control plane.
import type { CollectionTag, ScalarTag } from 'yaml'
import type { Policy, Service, Workload } from '../model.ts'
import { loadYaml } from '../yaml.ts'
import { messageOf, StateError } from './errors.ts'
import { readPolicy } from './local-policy.ts'
import { readList, readObject } from './local-read.ts'
import { readService } from './local-service.ts'
import { readWorkload } from './local-workload.ts'
import { serviceKey } from './view.ts'

export interface LocalContent {
  readonly workloads: readonly Workload[]
  readonly services: readonly Service[]
  readonly policies: readonly Policy[]
}

/** Reads the whole file. Throws a StateError that names the key; unknown keys are errors. */
export function parseLocalFile(text: string): LocalContent {
  let value: unknown
  try {
    value = loadYaml().parse(text, { customTags: matcherTags(), logLevel: 'error' })
  } catch (error) {
    throw new StateError('INVALID_LOCAL_FILE', `local configuration: ${messageOf(error)}`, { cause: error })
  }
  return readLocalContent(value ?? {})
}

/** The same from a parsed value. */
export function readLocalContent(value: unknown): LocalContent {
  const fields = readObject({ value, path: 'local configuration' }, [], ['workloads', 'services', 'policies'])
  const services = readList(fields.get('services'), readService)
  return {
    workloads: joinServices(readList(fields.get('workloads'), readWorkload), services),
    services,
    policies: readList(fields.get('policies'), readPolicy),
  }
}

/** A workload that only the endpoints of a service name is a member of that service too. */
function joinServices(workloads: readonly Workload[], services: readonly Service[]): readonly Workload[] {
  const memberships = new Map<string, Map<string, ReadonlyMap<number, number>>>()
  for (const service of services) {
    for (const endpoint of service.fixedEndpoints?.values() ?? []) {
      const known = memberships.get(endpoint.workloadUid) ?? new Map<string, ReadonlyMap<number, number>>()
      known.set(serviceKey(service), endpoint.ports)
      memberships.set(endpoint.workloadUid, known)
    }
  }
  return workloads.map((workload) => {
    const more = memberships.get(workload.uid)
    return more === undefined ? workload : { ...workload, services: new Map([...more, ...workload.services]) }
  })
}

/** `!Exact text` is another spelling of `{Exact: text}`. */
const matcherTags = (): (ScalarTag | CollectionTag)[] => [
  ...['Exact', 'Prefix', 'Suffix', 'Presence'].map(
    (kind): ScalarTag => ({
      tag: `!${kind}`,
      resolve: (value) => ({ [kind]: kind === 'Presence' ? [] : value }),
    }),
  ),
  {
    tag: '!Presence',
    collection: 'seq',
    nodeClass: loadYaml().YAMLSeq,
    resolve: () => ({ Presence: [] }),
  },
]
