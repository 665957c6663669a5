// What commands that take manifests share.
import { readFileSync } from 'node:fs'
import type { Resource } from '../api/index.ts'
import { type Manifest, readManifests } from '../kube/index.ts'

export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** The manifests named by `-f`. Throws a ManifestError with all that is wrong. */
export function manifestsOf(files: readonly string[]): Manifest[] {
  return readManifests(files, () => readFileSync(0, 'utf8'))
}

/** `deployment.apps/reviews`, as kubectl names an object. */
export function nameOf(resource: Resource, name: string): string {
  const kind = resource.kind.toLowerCase()
  return resource.group === '' ? `${kind}/${name}` : `${kind}.${resource.group}/${name}`
}
