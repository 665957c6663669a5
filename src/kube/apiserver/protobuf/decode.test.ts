import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { decodeProtobuf } from './decode.ts'

type Write = (writer: BinaryWriter) => void

function message(write: Write): Uint8Array {
  const writer = new BinaryWriter()
  write(writer)
  return writer.finish()
}

function nested(writer: BinaryWriter, field: number, write: Write): void {
  writer.tag(field, WireType.LengthDelimited).bytes(message(write))
}

function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value)
}

function envelope(apiVersion: string, kind: string, write: Write): Uint8Array {
  const unknown = message((writer) => {
    nested(writer, 1, (type) => {
      text(type, 1, apiVersion)
      text(type, 2, kind)
    })
    nested(writer, 2, write)
    text(writer, 3, '')
  })
  return Buffer.concat([Buffer.from('k8s\0'), unknown])
}

test('maps, bytes and metadata; zero values of plain fields are absent', () => {
  const bytes = envelope('v1', 'Secret', (writer) => {
    nested(writer, 1, (metadata) => {
      text(metadata, 1, 'a')
      text(metadata, 6, '')
      metadata.tag(7, WireType.Varint).int64(0)
      nested(metadata, 8, () => undefined)
      nested(metadata, 11, (label) => {
        text(label, 1, 'app')
        text(label, 2, '')
      })
    })
    nested(writer, 2, (entry) => {
      text(entry, 1, 'key')
      entry.tag(2, WireType.LengthDelimited).bytes(Buffer.from('value'))
    })
    text(writer, 3, 'Opaque')
  })
  assert.deepEqual(decodeProtobuf(bytes), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'a', labels: { app: '' } },
    data: { key: Buffer.from('value').toString('base64') },
    type: 'Opaque',
  })
})

test('zero of an optional field is kept; inlined parts, times and numbers-or-texts have their JSON form', () => {
  const bytes = envelope('v1', 'Pod', (writer) => {
    nested(writer, 1, (metadata) => {
      nested(metadata, 8, (time) => {
        time.tag(1, WireType.Varint).int64(1_767_225_600)
      })
    })
    nested(writer, 2, (spec) => {
      nested(spec, 1, (volume) => {
        text(volume, 1, 'tmp')
        nested(volume, 2, (source) => nested(source, 2, () => undefined))
      })
      nested(spec, 2, (container) => {
        text(container, 1, 'c')
        nested(container, 10, (probe) => {
          nested(probe, 1, (handler) =>
            nested(handler, 2, (http) =>
              nested(http, 2, (port) => {
                port.tag(1, WireType.Varint).int64(1)
                text(port, 3, 'http')
              }),
            ),
          )
          probe.tag(2, WireType.Varint).int32(0)
        })
      })
      spec.tag(4, WireType.Varint).int64(0)
    })
  })
  assert.deepEqual(decodeProtobuf(bytes), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      volumes: [{ name: 'tmp', emptyDir: undefined, hostPath: undefined }].map(({ name }) => ({ name, emptyDir: {} })),
      containers: [{ name: 'c', livenessProbe: { httpGet: { port: 'http' } } }],
      terminationGracePeriodSeconds: 0,
    },
  })
})

test('fields that are not known are skipped', () => {
  const bytes = envelope('v1', 'ConfigMap', (writer) => {
    writer.tag(99, WireType.Varint).int32(7)
    text(writer, 98, 'x')
  })
  assert.deepEqual(decodeProtobuf(bytes), { apiVersion: 'v1', kind: 'ConfigMap' })
})

test('what is no protobuf object is refused', () => {
  assert.throws(() => decodeProtobuf(Buffer.from('{}')), { code: 400 })
  assert.throws(() => decodeProtobuf(Buffer.from('k8s\0\x0a\xff\xff\xff\xff\x7f')), { code: 400 })
  assert.throws(() => decodeProtobuf(envelope('example.com/v1', 'Thing', () => undefined)), {
    code: 400,
    message: /send it as JSON/,
  })
})
