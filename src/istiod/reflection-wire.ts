// The messages of gRPC server reflection as bytes (grpc.reflection.v1, reflection.proto; v1alpha is the same).
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

export type ReflectionQuery =
  | { readonly kind: 'services' }
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'symbol'; readonly name: string }
  | { readonly kind: 'other' }

export type ReflectionAnswer =
  | { readonly kind: 'services'; readonly names: readonly string[] }
  /** Encoded FileDescriptorProtos. */
  | { readonly kind: 'files'; readonly files: readonly Uint8Array[] }
  /** `code`: of gRPC. */
  | { readonly kind: 'error'; readonly code: number; readonly message: string }

/** Throws for bytes that are no message. */
export function readQuery(bytes: Uint8Array): ReflectionQuery {
  const reader = new BinaryReader(bytes)
  let query: ReflectionQuery = { kind: 'other' }
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type !== WireType.LengthDelimited) reader.skip(type, field)
    else if (field === 3) query = { kind: 'file', name: reader.string() }
    else if (field === 4) query = { kind: 'symbol', name: reader.string() }
    else {
      reader.skip(type, field)
      if (field === 7) query = { kind: 'services' }
      else if (field !== 1) query = { kind: 'other' }
    }
  }
  return query
}

/** `request`: the bytes that are answered. */
export function writeAnswer(request: Uint8Array, answer: ReflectionAnswer): Buffer {
  const writer = new BinaryWriter()
  writer.tag(2, WireType.LengthDelimited).bytes(request)
  switch (answer.kind) {
    case 'files':
      writer.tag(4, WireType.LengthDelimited).fork()
      for (const file of answer.files) writer.tag(1, WireType.LengthDelimited).bytes(file)
      writer.join()
      break
    case 'services':
      writer.tag(6, WireType.LengthDelimited).fork()
      for (const name of answer.names) {
        writer.tag(1, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(name).join()
      }
      writer.join()
      break
    case 'error':
      writer.tag(7, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.Varint).int32(answer.code).tag(2, WireType.LengthDelimited).string(answer.message)
      writer.join()
  }
  return Buffer.from(writer.finish())
}
