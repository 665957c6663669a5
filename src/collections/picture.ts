// The collections of a running graph as a picture: a Mermaid flowchart, drawn by code hosts and editors.
import type { CollectionDescription } from './introspection.ts'

type Drawn = Pick<CollectionDescription, 'name' | 'reads'>

/**
 * One box for all collections whose names begin alike (`workloads/…`), inputs each on their own, an arrow where one has read another.
 * Sorted: equal graphs give equal texts.
 */
export function pictureOf(collections: readonly Drawn[]): string {
  const boxes = new Set(collections.map(({ name }) => boxOf(name)))
  const arrows = new Set(
    collections.flatMap(({ name, reads }) =>
      reads
        .map((read) => [boxOf(read), boxOf(name)] as const)
        .filter(([from, to]) => from !== to)
        .map(([from, to]) => `  ${idOf(from)} --> ${idOf(to)}`),
    ),
  )
  const shapes = [...boxes].sort().map((box) => `  ${idOf(box)}${shapeOf(box)}`)
  return ['flowchart LR', ...shapes, ...[...arrows].sort()].join('\n')
}

const inputs = 'inputs/'

function boxOf(name: string): string {
  return name.startsWith(inputs) ? name : (name.split('/')[0] ?? name)
}

function idOf(box: string): string {
  return box.replaceAll('/', '_')
}

function shapeOf(box: string): string {
  return box.startsWith(inputs) ? `[(${box.slice(inputs.length)})]` : `[${box}]`
}
