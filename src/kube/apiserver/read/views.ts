// How objects are shown to a client: as they are, as rows of a table, or only their metadata.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { present, presentJson } from '../core.ts'
import type { Wanted } from '../http/media.ts'
import type { Entry } from '../store/entry.ts'
import { type IncludedObject, tableOf } from '../tables/table.ts'

export interface ViewContext {
  readonly kind: KindDefinition
  readonly wanted: Wanted
  readonly include: IncludedObject
  readonly now: Date
}

/** One object as JSON text. */
export function viewEntry(context: ViewContext, entry: Entry): string {
  if (context.wanted.view === 'object') return presentJson(context.kind, entry)
  return JSON.stringify(viewObject(context, present(context.kind, entry)))
}

export function viewObject(context: ViewContext, object: KubeObject): unknown {
  switch (context.wanted.view) {
    case 'object':
      return object
    case 'metadata':
      return partialMetadata(object, context.wanted.metaVersion)
    case 'table':
      return tableOf(context, [object], { resourceVersion: object.metadata.resourceVersion ?? '' })
  }
}

export function partialMetadata(object: KubeObject, version: string): unknown {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata }
}
