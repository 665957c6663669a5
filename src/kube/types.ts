// What our processes ask of a Kubernetes API server. Only documented API behaviour is relied on.
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export interface InformerOptions<T> extends ListOptions {
  /** What of an object is cached and told; its name, namespace, uid and resource version must stay. */
  readonly keep?: (object: T) => T
}

export type Patch =
  | { readonly kind: 'json'; readonly body: readonly unknown[] }
  | { readonly kind: 'merge'; readonly body: unknown }
  | { readonly kind: 'strategic'; readonly body: unknown }
  | { readonly kind: 'apply'; readonly body: unknown; readonly fieldManager: string; readonly force?: boolean }

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: T }

/** A failed request, with the API server's Status. `code` is the HTTP status (0: not reached), `reason` the machine-readable word. */
export interface KubeErrorShape extends Error {
  readonly code: number
  readonly reason: string
  /** The server's Status object, where it sent one. */
  readonly status?: unknown
}

export interface WriteOptions {
  readonly subresource?: string
  readonly dryRun?: boolean
  readonly fieldManager?: string
  /** What unknown and repeated fields are: refused, warned of (the server's default), or dropped silently. */
  readonly fieldValidation?: 'Strict' | 'Warn' | 'Ignore'
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan'
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** A connection to one API server. Every method rejects with a KubeErrorShape on failure. */
export interface KubeClient {
  readonly server: string
  /** The object, or undefined when there is none (404). */
  get<T extends KubeObject>(resource: Resource, key: ObjectKey, subresource?: string): Promise<T | undefined>
  /** All objects, paged through to the end. */
  list<T extends KubeObject>(
    resource: Resource,
    options?: ListOptions,
  ): Promise<{ items: T[]; resourceVersion: string }>
  create<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  /** PUT; with `subresource: 'status'` the status only. */
  replace<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>
  patch<T extends KubeObject>(resource: Resource, key: ObjectKey, patch: Patch, options?: WriteOptions): Promise<T>
  /** Resolves false when there was nothing to delete. */
  delete(resource: Resource, key: ObjectKey, options?: DeleteOptions): Promise<boolean>
  /** Creates a subresource object of another kind (TokenRequest: `serviceaccounts/<name>/token`). */
  createSubresource<T>(resource: Resource, key: ObjectKey, subresource: string, body: unknown): Promise<T>
  /** A cache of the selected objects kept current by list and watch. Survives restarts of the server, 410 Gone and slow watches. */
  informer<T extends KubeObject>(resource: Resource, options?: InformerOptions<T>): Informer<T>
  /** The resource that serves a kind, by discovery (for manifests with kinds this program does not name). */
  resolve(apiVersion: string, kind: string): Promise<Resource | undefined>
  /** Any other request; the response is the caller's to read. `path` begins with '/'. */
  request(
    path: string,
    init?: { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Response>
  close(): Promise<void>
}

export type ObjectChange<T> =
  | { readonly kind: 'added'; readonly object: T }
  | { readonly kind: 'updated'; readonly object: T; readonly old: T }
  | { readonly kind: 'deleted'; readonly object: T }

export interface Informer<T extends KubeObject> extends AsyncDisposable {
  /** Resolves after the first complete list. */
  readonly synced: Promise<void>
  get(key: ObjectKey): T | undefined
  list(): T[]
  /**
   * Calls the listener with batches of changes; what is already known is delivered first, as one batch of `added`.
   * Returns the function that ends the subscription.
   */
  subscribe(listener: (changes: readonly ObjectChange<T>[]) => void): () => void
}
