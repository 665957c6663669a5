// gRPC server reflection: tools ask which services a port has, and what their messages are made of. Nothing of a request is read before its
// sender has proved who it is.
import { createRegistry, type DescFile, type Registry, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { type Server, type ServerDuplexStream, type ServiceDefinition, status } from '@grpc/grpc-js'
import { type ReflectionAnswer, readQuery, writeAnswer } from './reflection-wire.ts'

type Call = ServerDuplexStream<Buffer, Buffer>

export interface ReflectionOptions {
  /** Full names of the services, which are in the files. */
  readonly services: readonly string[]
  /** What can be described, with what it imports. */
  readonly files: readonly DescFile[]
  /** Rejects for callers that get no answers. */
  readonly authenticate: (call: Call) => Promise<unknown>
}

/** Each may be a question to an API server. */
const mostAuthenticating = 50
/** Far more than a name takes. */
const longestQuery = 4096

/** Adds the service under the names of its two versions. */
export function addReflection(server: Server, options: ReflectionOptions): void {
  const describe = describer(options)
  let authenticating = 0

  async function serve(call: Call): Promise<void> {
    call.on('error', () => {})
    if (authenticating >= mostAuthenticating) {
      call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: 'too many callers are being authenticated' })
      return
    }
    authenticating += 1
    try {
      await options.authenticate(call)
    } catch {
      call.emit('error', { code: status.UNAUTHENTICATED, details: 'authentication failure' })
      return
    } finally {
      authenticating -= 1
    }
    const sent = new Set<string>()
    call.on('drain', () => call.resume())
    call.on('end', () => call.end())
    call.on('data', (request: Buffer) => {
      if (!call.write(writeAnswer(request, describe(request, sent)))) call.pause()
    })
  }

  for (const version of ['v1', 'v1alpha']) {
    server.addService(definitionOf(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`), {
      ServerReflectionInfo: (call: Call) => void serve(call),
    })
  }
}

function definitionOf(path: string): ServiceDefinition {
  const asIs = (message: Buffer): Buffer => message
  return {
    ServerReflectionInfo: {
      path,
      requestStream: true,
      responseStream: true,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  }
}

/** Answers one request; `sent`: names of the files that the caller has been given, which it is not given again. */
function describer({ services, files }: ReflectionOptions): (request: Buffer, sent: Set<string>) => ReflectionAnswer {
  let known: { readonly types: Registry; readonly byName: ReadonlyMap<string, DescFile> } | undefined
  /** Most control planes are never asked. */
  function index() {
    known ??= {
      types: createRegistry(...files),
      byName: new Map(withImports(files).map((file) => [file.proto.name, file])),
    }
    return known
  }

  function give(file: DescFile | undefined, what: string, sent: Set<string>): ReflectionAnswer {
    if (file === undefined) return { kind: 'error', code: status.NOT_FOUND, message: `${what} is not known` }
    const given = withImports([file]).filter((one) => one === file || !sent.has(one.proto.name))
    for (const { proto } of given) sent.add(proto.name)
    return { kind: 'files', files: given.map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)) }
  }

  /** Methods and fields are found with what they are parts of. */
  function fileOf(symbol: string): DescFile | undefined {
    const { types } = index()
    const whole = symbol.replace(/^\./, '')
    return (types.get(whole) ?? types.get(whole.slice(0, Math.max(whole.lastIndexOf('.'), 0))))?.file
  }

  return (request, sent) => {
    const invalid = (message: string): ReflectionAnswer => ({ kind: 'error', code: status.INVALID_ARGUMENT, message })
    if (request.byteLength > longestQuery) return invalid(`expected at most ${longestQuery} bytes`)
    let query: ReturnType<typeof readQuery>
    try {
      query = readQuery(request)
    } catch {
      return invalid('expected a ServerReflectionRequest')
    }
    switch (query.kind) {
      case 'services':
        return { kind: 'services', names: services }
      case 'file':
        return give(index().byName.get(query.name), query.name, sent)
      case 'symbol':
        return give(fileOf(query.name), query.name, sent)
      case 'other':
        return { kind: 'error', code: status.UNIMPLEMENTED, message: 'extensions are not described' }
    }
  }
}

/** The files and what they import, each once, the ones asked for first. */
function withImports(files: readonly DescFile[]): readonly DescFile[] {
  const found = new Set(files)
  for (const file of found) for (const imported of file.dependencies) found.add(imported)
  return [...found]
}
