// Responses put together from the cached bytes of their resources, without encoding them again.
import type { EncodedResource } from '../types.ts'

function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return bytes
}

/** Tag and length of a length-delimited field. */
function head(field: number, length: number): Uint8Array {
  return Uint8Array.from([...varint((field << 3) | 2), ...varint(length)])
}

function bytesField(field: number, ...parts: readonly Uint8Array[]): Uint8Array[] {
  return [head(field, sizeOf(parts)), ...parts]
}

function textField(field: number, text: string): Uint8Array[] {
  return text === '' ? [] : bytesField(field, Buffer.from(text))
}

export function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}

/** Everything of a `Resource` in front of the body, which comes last. Made once a resource. */
const deltaHeads = new WeakMap<EncodedResource, Uint8Array>()

/** A `resources` entry of a DeltaDiscoveryResponse: the shared head and the shared body. */
export function deltaResource(typeUrl: string, resource: EncodedResource, withAliases: boolean): Uint8Array[] {
  if (withAliases && resource.aliases.length > 0) return [deltaHead(typeUrl, resource, resource.aliases), resource.body]
  let known = deltaHeads.get(resource)
  if (known === undefined) {
    known = deltaHead(typeUrl, resource, [])
    deltaHeads.set(resource, known)
  }
  return [known, resource.body]
}

function deltaHead(typeUrl: string, resource: EncodedResource, aliases: readonly string[]): Uint8Array {
  const any = anyHead(typeUrl, resource)
  const inResource = [
    ...textField(3, resource.name),
    ...textField(1, resource.version),
    ...aliases.flatMap((alias) => textField(4, alias)),
    head(2, any.byteLength + resource.body.byteLength),
    any,
  ]
  return Buffer.concat([head(2, sizeOf(inResource) + resource.body.byteLength), ...inResource])
}

/** An Any up to its value's bytes. */
function anyHead(typeUrl: string, resource: EncodedResource): Uint8Array {
  return Buffer.concat([...textField(1, resource.bodyType ?? typeUrl), head(2, resource.body.byteLength)])
}

/** A `resources` entry of a DiscoveryResponse. */
export function sotwResource(typeUrl: string, resource: EncodedResource): Uint8Array[] {
  const any = anyHead(typeUrl, resource)
  return [head(2, any.byteLength + resource.body.byteLength), any, resource.body]
}

export function removedResource(name: string): Uint8Array {
  return Buffer.concat(textField(6, name))
}

export interface Envelope {
  readonly typeUrl: string
  readonly version: string
  readonly nonce: string
  /** Identifier of this control plane. */
  readonly controlPlane: string
}

/** A DeltaDiscoveryResponse around parts made by `deltaResource` and `removedResource`. */
export function deltaResponse(envelope: Envelope, parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([
    ...textField(1, envelope.version),
    ...textField(4, envelope.typeUrl),
    ...textField(5, envelope.nonce),
    ...bytesField(7, ...textField(1, envelope.controlPlane)),
    ...parts,
  ])
}

/** A DiscoveryResponse around parts made by `sotwResource`. */
export function sotwResponse(envelope: Envelope, parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([
    ...textField(1, envelope.version),
    ...textField(4, envelope.typeUrl),
    ...textField(5, envelope.nonce),
    ...bytesField(6, ...textField(1, envelope.controlPlane)),
    ...parts,
  ])
}
