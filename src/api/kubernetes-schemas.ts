// The schemas of the built-in kinds of Kubernetes, with references between definitions resolved.
import { definitions, kinds } from './gen/kubernetes.js'
import type { Schema } from './kind.ts'

/** A generated schema: definitions refer to each other by name. */
export type RawSchema = Omit<Schema, 'properties' | 'items' | 'additionalProperties' | 'definition'> & {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, RawSchema>>
  readonly items?: RawSchema
  readonly additionalProperties?: RawSchema
}

let resolved: ReadonlyMap<string, Schema> | undefined

/** All definitions by name, such as `io.k8s.api.core.v1.Container`. */
export function kubernetesDefinitions(): ReadonlyMap<string, Schema> {
  resolved ??= resolveAll()
  return resolved
}

/** The schema of a built-in kind; undefined when Kubernetes has no such kind or this program does not serve it. */
export function kubernetesSchema(group: string, version: string, kind: string): Schema | undefined {
  const name = kinds[`${group}/${version}/${kind}`]
  return name === undefined ? undefined : kubernetesDefinitions().get(name)
}

function resolveAll(): ReadonlyMap<string, Schema> {
  const targets = new Map(Object.keys(definitions).map((name) => [name, { definition: name }] as const))
  const pending: (() => void)[] = []

  const reference = (ref: string): Schema => {
    const target = targets.get(ref.slice('#/definitions/'.length))
    if (target === undefined) throw new Error(`schema refers to ${ref}, which is not defined`)
    return target
  }
  const resolve = (raw: RawSchema): Schema => {
    if (raw.$ref !== undefined) {
      const { $ref, ...own } = raw
      const target = reference($ref)
      if (Object.keys(own).length === 0) return target
      const copy = {}
      pending.push(() => Object.assign(copy, target, own))
      return copy
    }
    const { $ref: _, properties, items, additionalProperties, ...rest } = raw
    return {
      ...rest,
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, resolve(field)])),
          }),
      ...(items === undefined ? {} : { items: resolve(items) }),
      ...(additionalProperties === undefined ? {} : { additionalProperties: resolve(additionalProperties) }),
    }
  }
  for (const [name, target] of targets) Object.assign(target, resolve(definitions[name] ?? {}))
  for (const fill of pending) fill()
  return targets
}
