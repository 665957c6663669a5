// Generates the protobuf code of src/proto/gen: our own .proto files and those they need of the xDS API.
// The xDS API's files come from the @grpc/grpc-js-xds package; only the entry points named here and what they import
// are generated, so this takes seconds.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const xdsPackage = dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json'))

/** Entry points outside our own files. */
const entryPoints = [
  'envoy/service/discovery/v3/discovery.proto',
  'envoy/service/discovery/v3/ads.proto',
  'envoy/service/status/v3/csds.proto',
]

/**
 * The package's validate.proto is older than the Envoy files beside it and lacks an option they use. Field number and type are those of
 * protoc-gen-validate's published schema.
 */
function withIgnoreEmpty(validateProto: string): string {
  if (/message StringRules \{[^}]*ignore_empty/s.test(validateProto)) return validateProto
  return validateProto.replace('message StringRules {', 'message StringRules {\n  optional bool ignore_empty = 26;\n')
}

function run(command: string, args: string[], cwd: string): void {
  execFileSync(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })
}

const work = mkdtempSync(join(tmpdir(), 'lateen-proto-'))
try {
  const modules = [
    ['own', join(root, 'src/proto'), 'istio'],
    ['envoy', join(xdsPackage, 'deps/envoy-api'), 'envoy'],
    ['xds', join(xdsPackage, 'deps/xds'), ''],
    ['googleapis', join(xdsPackage, 'deps/googleapis'), 'google'],
    ['validate', join(xdsPackage, 'deps/protoc-gen-validate'), 'validate'],
  ] as const
  for (const [name, source, below] of modules) {
    cpSync(join(source, below), join(work, name, below), {
      recursive: true,
      filter: (path) => !path.includes('/gen/'),
    })
  }
  const validate = join(work, 'validate/validate/validate.proto')
  writeFileSync(validate, withIgnoreEmpty(readFileSync(validate, 'utf8')))
  writeFileSync(
    join(work, 'buf.yaml'),
    `version: v2\nmodules:\n${modules.map(([name]) => `  - path: ${name}\n`).join('')}`,
  )
  const out = join(root, 'src/proto/gen')
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  writeFileSync(
    join(work, 'buf.gen.yaml'),
    `version: v2\nplugins:\n  - local: ${join(root, 'node_modules/.bin/protoc-gen-es')}\n    out: ${out}\n    opt: [target=js+dts, import_extension=js]\n    include_imports: true\n`,
  )
  const paths = ['own/istio', ...entryPoints.map((path) => `envoy/${path}`)].flatMap((path) => ['--path', path])
  run(join(root, 'node_modules/.bin/buf'), ['generate', ...paths], work)
} finally {
  rmSync(work, { recursive: true, force: true })
}

await import('./generate-kubernetes-schemas.ts')
