import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js'
import { namespaceNamed } from '../../test/support/cluster-objects.ts'
import { startDiscovery } from '../../test/support/discovery.ts'
import { startTestApi } from '../../test/support/embedded-api.ts'
import { resources } from '../api/index.ts'
import { ads, workload } from '../proto/index.ts'
import { addReflection } from './reflection.ts'

const service = ads.AggregatedDiscoveryService.typeName
const question = (field: number, text: string): Buffer =>
  Buffer.from(
    new BinaryWriter()
      .tag(1, WireType.LengthDelimited)
      .string('host')
      .tag(field, WireType.LengthDelimited)
      .string(text)
      .finish(),
  )

/** Field numbers with their bytes. */
function fieldsOf(bytes: Uint8Array): (readonly [number, Uint8Array])[] {
  const reader = new BinaryReader(bytes)
  const fields: (readonly [number, Uint8Array])[] = []
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type === WireType.LengthDelimited) fields.push([field, reader.bytes()])
    else fields.push([field, Uint8Array.of(reader.int32())])
  }
  return fields
}

function importsFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const sorted = new Set<FileDescriptorProto>()
  const add = (file: FileDescriptorProto): void => {
    for (const one of files) if (file.dependency.includes(one.name)) add(one)
    sorted.add(file)
  }
  for (const file of files) add(file)
  return [...sorted]
}

async function serve(t: TestContext) {
  const server = new Server()
  addReflection(server, {
    services: [service],
    files: [ads.AggregatedDiscoveryService.file, workload.AddressSchema.file],
    authenticate: async ({ metadata }) => {
      if (metadata.get('authorization')[0] !== 'Bearer good') throw new Error('nobody')
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  t.after(() => server.forceShutdown())
  return caller(t, port)
}

/** Opens streams with a token. */
function caller(t: TestContext, port: number, channel = credentials.createInsecure()) {
  const client = new Client(`localhost:${port}`, channel)
  t.after(() => client.close())
  const asIs = (message: Buffer): Buffer => message
  return (version = 'v1', token = 'good') => {
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer ${token}`)
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`
    const call = client.makeBidiStreamRequest(path, asIs, asIs, metadata)
    t.after(() => call.cancel())
    call.on('error', () => {})
    return {
      call,
      /** The answer's kind, and its fields. */
      async ask(request: Buffer) {
        const answered = once(call, 'data') as Promise<[Buffer]>
        call.write(request)
        const [[original, echo], [kind, content]] = fieldsOf((await answered)[0]) as [
          readonly [number, Uint8Array],
          readonly [number, Uint8Array],
        ]
        assert.equal(original, 2)
        assert.deepEqual(Buffer.from(echo), request)
        return { kind, parts: fieldsOf(content).map(([, bytes]) => bytes) }
      },
    }
  }
}

/** The names of services in an answer. */
function namesIn({ kind, parts }: { readonly kind: number; readonly parts: readonly Uint8Array[] }): string[] {
  assert.equal(kind, 6)
  return parts.flatMap((part) => fieldsOf(part)).map(([, name]) => Buffer.from(name).toString())
}

const errorCode = (parts: readonly Uint8Array[]): number | undefined => parts[0]?.[0]

describe('reflection', { timeout: 20_000 }, () => {
  test('names the services, in both of its versions', async (t) => {
    const open = await serve(t)
    for (const version of ['v1', 'v1alpha']) {
      assert.deepEqual(namesIn(await open(version).ask(question(7, '*'))), [service])
    }
  })

  test('describes services, methods and messages with all that they are made of, each file once', async (t) => {
    const open = await serve(t)
    for (const symbol of [
      service,
      `${service}.DeltaAggregatedResources`,
      'istio.workload.Workload',
      '.istio.workload.Address',
    ]) {
      const { kind, parts } = await open().ask(question(4, symbol))
      assert.equal(kind, 4, symbol)
      const file = parts.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
      // Throws where an import is missing.
      const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: importsFirst(file) }))
      const whole = symbol.replace(/^\./, '').replace(/\.Delta.*/, '')
      assert.equal(registry.get(whole)?.typeName, whole)
    }
    const { ask } = open()
    const first = await ask(question(4, service))
    assert.ok(first.parts.length > 1)
    assert.equal((await ask(question(4, service))).parts.length, 1)
    const byName = await ask(question(3, 'google/protobuf/any.proto'))
    assert.equal(fromBinary(FileDescriptorProtoSchema, byName.parts[0] ?? new Uint8Array()).package, 'google.protobuf')
  })

  test('says what it does not know, and does not understand', async (t) => {
    const open = await serve(t)
    const { ask } = open()
    for (const [request, code] of [
      [question(4, 'no.such.Thing'), 5],
      [question(4, ''), 5],
      [question(3, 'none.proto'), 5],
      [question(6, 'istio.workload.Workload'), 12],
      [question(4, 'x'.repeat(5_000)), 3],
      [Buffer.from([0x22, 0x7f]), 3],
    ] as const) {
      const { kind, parts } = await ask(request)
      assert.deepEqual([kind, errorCode(parts)], [7, code])
    }
  })

  test('answers nobody who is nobody', async (t) => {
    const open = await serve(t)
    const { call } = open('v1', 'bad')
    const failed = once(call, 'data')
    call.write(question(7, '*'))
    await assert.rejects(failed, { code: 16 })
  })
})

test('a control plane describes xDS without TLS to all, and over TLS to callers that have proved who they are', {
  timeout: 60_000,
}, async (t) => {
  await using api = await startTestApi()
  await api.client.create(resources.namespaces, namespaceNamed('istio-system'))
  const stateDir = mkdtempSync(join(tmpdir(), 'lateen-reflection-'))
  t.after(() => rmSync(stateDir, { recursive: true }))
  await using discovery = await startDiscovery({
    kubeconfig: api.server.kubeconfig,
    stateDir,
    flags: { grpcAddr: '127.0.0.1:0' },
  })
  const plain = caller(t, discovery.ports.plainGrpc ?? 0)('v1', 'none')
  assert.deepEqual(namesIn(await plain.ask(question(7, '*'))), [service])
  plain.call.cancel()
  const tls = credentials.createSsl(null, null, null, { rejectUnauthorized: false })
  const { call } = caller(t, discovery.ports.grpc, tls)('v1', 'none')
  const refused = once(call, 'data')
  call.write(question(7, '*'))
  await assert.rejects(refused, { code: 16 })
})
