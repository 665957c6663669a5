// OpenAPI documents of the served kinds: one document in version 2, one per API group and version in version 3.
import { createHash } from 'node:crypto'
import type { Schema } from '../../../api/index.ts'
import type { KindDefinition } from '../types.ts'
import { definitionsOf, type Json } from './definitions.ts'
import { pathOf, pathsOf } from './paths.ts'

const info = { title: 'Kubernetes', version: 'v1.32.0' }

/** The whole API in OpenAPI version 2. */
export function documentV2(kinds: readonly KindDefinition[], shared: ReadonlyMap<string, Schema>): Json {
  return {
    swagger: '2.0',
    info,
    paths: Object.assign({}, ...kinds.map((kind) => pathsOf(kind, 'v2'))),
    definitions: definitionsOf(kinds, shared, 'v2'),
  }
}

export interface GroupDocument {
  /** Such as `apis/apps/v1`. */
  readonly path: string
  readonly json: string
  readonly hash: string
}

/** OpenAPI version 3: a document for each group and version. */
export function documentsV3(
  kinds: readonly KindDefinition[],
  shared: ReadonlyMap<string, Schema>,
): ReadonlyMap<string, GroupDocument> {
  const groups = Map.groupBy(kinds, (kind) => pathOf(kind).slice(1))
  return new Map(
    [...groups].map(([path, members]) => {
      const json = JSON.stringify({
        openapi: '3.0.0',
        info,
        paths: Object.assign({}, ...members.map((kind) => pathsOf(kind, 'v3'))),
        components: { schemas: definitionsOf(members, shared, 'v3') },
      })
      const hash = createHash('sha256').update(json).digest('hex').toUpperCase()
      return [path, { path, json, hash }]
    }),
  )
}

/** What `/openapi/v3` answers: where each document is. */
export function indexV3(documents: ReadonlyMap<string, GroupDocument>): Json {
  return {
    paths: Object.fromEntries(
      [...documents.values()].map(({ path, hash }) => [
        path,
        { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` },
      ]),
    ),
  }
}
