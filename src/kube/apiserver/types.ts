// The interfaces between the parts of the embedded API: kinds, users, authorization, admission, special resources.
import type { IncomingHttpHeaders } from 'node:http'
import type { PeerCertificate } from 'node:tls'
import type { Cause, KindDefinition, KubeObject, ObjectKey } from '../../api/index.ts'

export type { Cause, KindDefinition, KubeObject, ObjectKey }

/** Done at once, or when the promise resolves. */
export type MaybeLater = Promise<void> | void

/** The user a request acts as. */
export interface AuthenticatedUser {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What an authenticator may look at. */
export interface Credentials {
  readonly headers: IncomingHttpHeaders
  /** The client's certificate when it was presented and chains to the client CA. */
  readonly certificate?: PeerCertificate
}

export interface Authenticator {
  /** The user; undefined when no credentials that this authenticator knows are given. Throws ApiError 401 when they are given and wrong. */
  authenticate(credentials: Credentials): Promise<AuthenticatedUser | undefined>
}

/** What a user wants to do, in the terms of SubjectAccessReview. */
export type AuthorizationAttributes =
  | {
      readonly kind: 'resource'
      readonly user: AuthenticatedUser
      /** get, list, watch, create, update, patch, delete, deletecollection, or a special verb such as impersonate. */
      readonly verb: string
      readonly group: string
      readonly version: string
      readonly resource: string
      readonly subresource?: string
      readonly namespace?: string
      /** Of a list or a watch: the one object that its field selector names. */
      readonly name?: string
      /** Of a list, a watch or a deletecollection: the fields that must equal a value. */
      readonly fieldSelector?: Readonly<Record<string, string>>
    }
  | { readonly kind: 'path'; readonly user: AuthenticatedUser; readonly verb: string; readonly path: string }

export interface AuthorizationDecision {
  readonly allowed: boolean
  readonly reason?: string
}

export interface Authorizer {
  authorize(attributes: AuthorizationAttributes): Promise<AuthorizationDecision>
}

/** A write on its way to the store. `object` may be replaced by mutating plugins. */
export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  readonly kind: KindDefinition
  readonly subresource?: string
  readonly namespace?: string
  readonly name: string
  readonly user: AuthenticatedUser
  readonly dryRun: boolean
  /** Create/update/patch/delete options as sent. */
  readonly options: Readonly<Record<string, unknown>>
  /** Absent for DELETE. */
  object?: KubeObject
  readonly oldObject?: KubeObject
  /** Texts for Warning headers. */
  readonly warnings: string[]
}

/** A stage of admission. Mutating stages of all plugins run first, then the object is validated, then the validating stages run. Refuse by throwing ApiError. */
export interface AdmissionPlugin {
  readonly name: string
  mutate?(request: AdmissionRequest): MaybeLater
  validate?(request: AdmissionRequest): MaybeLater
}

/** The kinds that are served; changes when CRDs do. */
export interface KindRegistry {
  list(): readonly KindDefinition[]
  find(group: string, version: string, plural: string): KindDefinition | undefined
  byKind(apiVersion: string, kind: string): KindDefinition | undefined
  /** Replaces everything `owner` (such as `crd/gateways.networking.istio.io`) has registered; an empty list removes it. */
  register(owner: string, definitions: readonly KindDefinition[]): void
  /** A number that grows with each change, for caches of discovery and OpenAPI. */
  readonly generation: number
}

export interface StoreChange {
  readonly kind: 'added' | 'updated' | 'deleted'
  readonly object: KubeObject
  readonly old?: KubeObject
}

/**
 * Reads from memory, without authorization. Objects are shared and in the kind's stored version: never mutate, clone first.
 * A kind is named by its stored group and plural (`apps`, `deployments`).
 */
export interface ObjectReader {
  get(group: string, plural: string, key: ObjectKey): KubeObject | undefined
  list(group: string, plural: string, namespace?: string): KubeObject[]
  /** Calls back synchronously after each write; existing objects are delivered first as `added`. Returns the unsubscribe function. */
  subscribe(group: string, plural: string, listener: (change: StoreChange) => void): () => void
}

export interface CoreWriteOptions {
  readonly dryRun?: boolean
  readonly fieldManager?: string
  readonly subresource?: string
  /** Acts as this user in admission; the server itself (system:apiserver, group system:masters) when absent. */
  readonly user?: AuthenticatedUser
}

export interface CoreDeleteOptions extends CoreWriteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan'
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** Access from within the server: reads, and writes with defaults, validation and admission but without authorization. Rejects with ApiError. */
export interface ApiCore {
  readonly kinds: KindRegistry
  readonly objects: ObjectReader
  create(kind: KindDefinition, object: KubeObject, options?: CoreWriteOptions): Promise<KubeObject>
  /** With `metadata.resourceVersion`: 409 when the stored object has moved on. */
  update(kind: KindDefinition, object: KubeObject, options?: CoreWriteOptions): Promise<KubeObject>
  delete(kind: KindDefinition, key: ObjectKey, options?: CoreDeleteOptions): Promise<void>
}

/** A request to a special resource, authenticated and authorized. */
export interface SpecialRequest {
  readonly core: ApiCore
  readonly user: AuthenticatedUser
  /** The HTTP method. */
  readonly method: string
  readonly namespace?: string
  /** The parent's name for subresources; the object's own for named requests. */
  readonly name?: string
  readonly query: URLSearchParams
  /** The parsed body of POST, PUT and PATCH. */
  readonly body: unknown
  readonly dryRun: boolean
}

/** Answers a subresource (`serviceaccounts/token`) or a resource that is not stored (`tokenreviews`). */
export interface SpecialHandler {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly subresource?: string
  readonly methods: readonly string[]
  /** Resolves to the object to send and the HTTP status (201 for what was created). Rejects with ApiError. */
  handle(request: SpecialRequest): Promise<{ readonly status: number; readonly body: unknown }>
}

/** A path outside the resource tree: `/openapi/v2`, `/openid/v1/jwks`. A path that ends in `/` serves everything below it. */
export interface PathHandler {
  readonly path: string
  /** Authorized as a non-resource path like any other; `public` ones are served to everyone, even without credentials. */
  readonly public?: boolean
  handle(request: {
    readonly method: string
    readonly path: string
    readonly query: URLSearchParams
    readonly headers: IncomingHttpHeaders
    readonly core: ApiCore
  }): Promise<PathResponse> | PathResponse
}

export interface PathResponse {
  readonly status: number
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** A part that plugs into the server. All fields are optional. */
export interface ApiExtension {
  readonly name: string
  readonly kinds?: readonly KindDefinition[]
  readonly authenticators?: readonly Authenticator[]
  readonly authorizers?: readonly Authorizer[]
  readonly admission?: readonly AdmissionPlugin[]
  readonly special?: readonly SpecialHandler[]
  readonly paths?: readonly PathHandler[]
  /** Called once the store is open and before requests are served; may create bootstrap objects. */
  start?(core: ApiCore): MaybeLater
  close?(): MaybeLater
}

/** What the listener and the client of kubelets need from the PKI. All are PEM texts. */
export interface ServerIdentity {
  readonly serving: { readonly certificate: string; readonly key: string }
  /** Client certificates are accepted from this CA. */
  readonly clientCa: string
  /** Presented to kubelets; and the CA that kubelets' serving certificates chain to. */
  readonly kubeletClient: { readonly certificate: string; readonly key: string; readonly ca: string }
}
