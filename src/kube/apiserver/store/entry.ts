// One stored object at one revision. Kept as JSON text (compact, and sent as it is); parsed only when someone looks inside.
import type { KubeObject } from '../../../api/index.ts'

export class Entry {
  readonly namespace: string
  readonly name: string
  readonly revision: number
  readonly json: string
  #labels: Readonly<Record<string, string>> | undefined
  #parsed: WeakRef<KubeObject> | undefined
  #fields: Map<string, string> | undefined

  constructor(namespace: string, name: string, revision: number, json: string, parsed?: KubeObject) {
    this.namespace = namespace
    this.name = name
    this.revision = revision
    this.json = json
    if (parsed !== undefined) this.#remember(parsed)
  }

  /** Shared: never mutate. */
  get object(): KubeObject {
    const known = this.#parsed?.deref()
    if (known !== undefined) return known
    const parsed: KubeObject = JSON.parse(this.json)
    this.#remember(parsed)
    return parsed
  }

  /** An own copy. */
  clone(): KubeObject {
    return JSON.parse(this.json)
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#labels ?? this.object.metadata.labels ?? {}
  }

  /** The value of a selectable field, computed once. */
  field(path: string, read: (object: KubeObject) => string): string {
    const known = this.#fields?.get(path)
    if (known !== undefined) return known
    const value = read(this.object)
    this.#fields ??= new Map()
    this.#fields.set(path, value)
    return value
  }

  get key(): string {
    return `${this.namespace}/${this.name}`
  }

  #remember(parsed: KubeObject): void {
    this.#parsed = new WeakRef(parsed)
    this.#labels = parsed.metadata.labels ?? {}
  }
}

/** JSON with `apiVersion`, `kind` and `metadata` first, as readers of a prefix rely on. */
export function serialize(object: KubeObject): string {
  const { apiVersion, kind, metadata, ...rest } = object
  return JSON.stringify({ apiVersion, kind, metadata, ...rest })
}
