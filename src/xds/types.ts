// What an xDS type is served from, and what a client of one is told.

/** One resource, encoded once for all clients. */
export interface EncodedResource {
  readonly name: string
  /** Other keys an on-demand client may ask for it by. */
  readonly aliases: readonly string[]
  /** Content hash: equal content has equal versions on every replica. */
  readonly version: string
  /** The serialised message, without the Any around it. */
  readonly body: Uint8Array
  /** Type of the message inside the Any, where it isn't that of the resource type. */
  readonly bodyType?: string
}

/** The client of a stream, as authenticated and as it describes itself in its first request. */
export interface XdsClient {
  /** Node id text of the first request. */
  readonly nodeId: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** Verified identities (SPIFFE ids); empty where clients are not authenticated. */
  readonly identities: readonly string[]
}

/** A type that is asked and answered once: nothing is watched. */
export interface OneShotType {
  readonly typeUrl: string
  /** It tells of the clients, whatever names are asked for: who has asked is told again when clients come or go. */
  readonly isOfClients?: boolean
  /** Throws a StreamError to end the stream. */
  answer(client: XdsClient, names: readonly string[]): readonly EncodedResource[]
}

/** Which changed resources concern an on-demand subscriber beyond their own names. */
export interface ResourceChange {
  readonly name: string
  /** The resource before, where there was one. */
  readonly old?: EncodedResource
  /** The resource now; absent when it was removed. */
  readonly new?: EncodedResource
  /** Whom it reaches beside those who subscribe to its name; absent: nobody. Asked only where clients subscribe to names. */
  reach?(): Reach
}

export interface Reach {
  /** Names, aliases and service keys, before and after: the change goes to clients that subscribe to one of them. */
  readonly keys: readonly string[]
  /** Node names, before and after, whose clients get the change without asking. */
  readonly nodes: readonly string[]
}

/** The resources of one type. Reads are synchronous and consistent within one turn of the event loop. */
export interface ResourceSource {
  readonly typeUrl: string
  /** True once every input has been read once; until then clients are told to retry. */
  readonly synced: boolean
  list(): Iterable<EncodedResource>
  get(name: string): EncodedResource | undefined
  /** Resources found by name or alias; a service key also finds its workloads. Absent: this type has no on-demand mode. */
  lookup?(key: string): readonly EncodedResource[]
  /** Names of the resources an on-demand client on this node gets without asking. */
  namesOfNode?(nodeName: string): Iterable<string>
  /** Calls the listener with each wave of changes. Returns the function that ends the subscription. */
  subscribe(listener: (changes: readonly ResourceChange[]) => void): () => void
}

/** One response as the client of a delta stream hands it to its owner. */
export interface DeltaUpdate {
  readonly typeUrl: string
  readonly resources: readonly {
    readonly name: string
    /** Other keys it can be asked for by, as the server names them. */
    readonly aliases?: readonly string[]
    readonly version: string
    readonly body: Uint8Array
  }[]
  readonly removed: readonly string[]
}

/** What the owner of a delta stream says of one update: the resources it rejects, with the reason. Everything else is in force. */
export interface DeltaVerdict {
  readonly rejected: readonly { readonly name: string; readonly reason: string }[]
}
