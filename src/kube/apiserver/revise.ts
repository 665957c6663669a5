// Changes a stored object on behalf of the server, again when someone else was faster.
import { ApiError } from './errors.ts'
import type { ApiCore, CoreWriteOptions, KindDefinition, KubeObject, ObjectKey } from './types.ts'

/**
 * Writes what `change` makes of a copy of the object; nothing when it returns undefined or the object is gone.
 * Rejects with the ApiError of a write that fails for another reason than a conflict.
 */
export async function revise<T extends KubeObject>(
  core: ApiCore,
  kind: KindDefinition,
  key: ObjectKey,
  change: (object: T) => T | undefined,
  options: CoreWriteOptions = {},
): Promise<void> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const stored = core.objects.get(kind.storage?.group ?? kind.group, kind.plural, key)
    if (stored === undefined) return
    const changed = change(structuredClone(stored) as T)
    if (changed === undefined) return
    try {
      await core.update(kind, changed, options)
      return
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return
      if (!(error instanceof ApiError && error.code === 409) || attempt === 9) throw error
    }
  }
}
