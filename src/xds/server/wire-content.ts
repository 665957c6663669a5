// The entries of many resources written into one buffer: for contents that many clients get alike, which are large.
import type { EncodedResource } from '../types.ts'

/** Tags of length-delimited fields: of a DeltaDiscoveryResponse, a Resource and an Any. */
const tags = { entry: 0x12, removed: 0x32, name: 0x1a, version: 0x0a, any: 0x12, type: 0x0a, value: 0x12 } as const

function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size += 1
  return size
}

/** Tag, length and content. */
const fieldSize = (length: number): number => 1 + varintSize(length) + length
/** A text that is empty is left out. */
const textSize = (length: number): number => (length === 0 ? 0 : fieldSize(length))

/** The same bytes as `deltaResource` of each, without aliases, and `removedResource` of each name. */
export function deltaContent(
  typeUrl: string,
  resources: readonly EncodedResource[],
  removed: readonly string[],
): Buffer {
  const types = new Map<string, Buffer>()
  const typeOf = ({ bodyType = typeUrl }: EncodedResource): Buffer => {
    const known = types.get(bodyType) ?? Buffer.from(bodyType)
    types.set(bodyType, known)
    return known
  }
  const anySizeOf = (resource: EncodedResource): number =>
    textSize(typeOf(resource).byteLength) + fieldSize(resource.body.byteLength)
  const sizeOf = (resource: EncodedResource): number =>
    textSize(Buffer.byteLength(resource.name)) +
    textSize(Buffer.byteLength(resource.version)) +
    fieldSize(anySizeOf(resource))

  let size = 0
  for (const resource of resources) size += fieldSize(sizeOf(resource))
  for (const name of removed) size += textSize(Buffer.byteLength(name))
  const out = Buffer.allocUnsafe(size)
  let at = 0
  const head = (tag: number, length: number): void => {
    out[at++] = tag
    let rest = length
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) out[at++] = (rest & 0x7f) | 0x80
    out[at++] = rest
  }
  const text = (tag: number, value: string): void => {
    if (value === '') return
    head(tag, Buffer.byteLength(value))
    at += out.write(value, at)
  }
  const bytes = (tag: number, value: Uint8Array): void => {
    head(tag, value.byteLength)
    out.set(value, at)
    at += value.byteLength
  }
  for (const resource of resources) {
    const type = typeOf(resource)
    head(tags.entry, sizeOf(resource))
    text(tags.name, resource.name)
    text(tags.version, resource.version)
    head(tags.any, anySizeOf(resource))
    if (type.byteLength > 0) bytes(tags.type, type)
    bytes(tags.value, resource.body)
  }
  for (const name of removed) text(tags.removed, name)
  return out
}
