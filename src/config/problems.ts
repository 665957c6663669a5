// Objects that are invalid at present: who they are, what is wrong with them, and what serves meanwhile.
import type { KubeObject, Resource } from '../api/index.ts'
import { nameKey } from './source.ts'

export interface FieldProblem {
  /** As `spec.ports[0].name`; empty for the object as a whole. */
  readonly field: string
  /** What was expected. */
  readonly message: string
}

export function problemText({ field, message }: FieldProblem): string {
  return field === '' || message.includes(field) ? message : `${field}: ${message}`
}

export interface ObjectProblems {
  readonly resource: Resource
  readonly object: KubeObject
  readonly problems: readonly FieldProblem[]
  /** Where it is written, when that is not an API server: `file:line`. */
  readonly where?: string
  /** What is served while it is invalid. */
  readonly served: 'the last valid one' | 'nothing' | 'as the narrowest it may mean'
}

export interface ProblemLog {
  set(problems: ObjectProblems): void
  clear(resource: Resource, object: KubeObject): void
  get(key: string): ObjectProblems | undefined
  list(): readonly ObjectProblems[]
  /** Tells keys whose problems began, changed or ended; the present ones at once. */
  subscribe(listener: (key: string) => void): () => void
}

/** `<plural>.<group>/<namespace>/<name>`. */
export function problemKey(resource: Resource, object: KubeObject): string {
  return `${resource.plural}.${resource.group}/${nameKey(object.metadata)}`
}

export function createProblemLog(): ProblemLog {
  const present = new Map<string, ObjectProblems>()
  const listeners = new Set<(key: string) => void>()
  const tell = (key: string): void => {
    for (const listener of [...listeners]) listener(key)
  }
  return {
    set(problems) {
      const key = problemKey(problems.resource, problems.object)
      present.set(key, problems)
      tell(key)
    },
    clear(resource, object) {
      const key = problemKey(resource, object)
      if (present.delete(key)) tell(key)
    },
    get: (key) => present.get(key),
    list: () => [...present.values()],
    subscribe(listener) {
      listeners.add(listener)
      for (const key of present.keys()) listener(key)
      return () => listeners.delete(listener)
    },
  }
}
