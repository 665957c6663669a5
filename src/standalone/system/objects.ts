// Building blocks of the system's objects.
import type { KubeObject, ObjectMeta } from '../../api/index.ts'

export function object(
  apiVersion: string,
  kind: string,
  metadata: ObjectMeta,
  rest: Record<string, unknown> = {},
): KubeObject {
  return { apiVersion, kind, metadata, ...rest }
}

export function fromField(name: string, fieldPath: string) {
  return { name, valueFrom: { fieldRef: { fieldPath } } }
}

export const read = ['get', 'list', 'watch']

/** What a pod of the system tolerates: everything. */
export const tolerations = [{ operator: 'Exists' }]
