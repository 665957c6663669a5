// Checks that imports between the rooms of src/ point downward and enter a room only by its index.ts.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

/** Rooms by layer, highest first. A room may import rooms of lower layers, and those of its own layer named in `sideways`. */
const layers: readonly (readonly string[])[] = [
  ['commands'],
  ['istiod', 'ztunnel', 'proxy', 'agent', 'cni', 'standalone', 'dashboard', 'install'],
  ['discovery', 'config', 'analysis', 'xds', 'ca', 'injection', 'redirect', 'hbone', 'kube'],
  ['collections', 'api', 'proto', 'linux', 'observability', 'shared-memory', 'util', 'grpc'],
]

/** Imports within a layer: the room on the left may use those on the right. */
const sideways: Readonly<Record<string, readonly string[]>> = {
  discovery: ['config', 'xds'],
  config: ['kube', 'xds'],
  analysis: ['config', 'discovery'],
  api: ['util'],
  observability: ['util'],
  collections: ['util'],
  linux: ['util'],
}

/** A part of a room that is a room of its own: it has its own index.ts. */
const innerRooms = [
  'ca/client',
  'ca/revocation',
  'grpc/server',
  'kube/apiserver',
  'proto/control-plane',
  'xds/client',
  'discovery/ambient',
  'discovery/envoy',
  'discovery/gateway',
  'standalone/controllers',
]

const src = join(import.meta.dirname, '../src')
const layerOf = new Map(layers.flatMap((rooms, layer) => rooms.map((room) => [room, layer] as const)))
const importPattern =
  /(?:^|\n)(?:import|export)\b[^'"`;]*?\bfrom\s+['"](\.[^'"]+)['"]|\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g

function roomOf(path: string): { room: string; inner: string } {
  const inner = innerRooms.find((prefix) => path.startsWith(`${prefix}/`))
  return { room: path.split('/')[0] ?? '', inner: inner ?? path.split('/')[0] ?? '' }
}

function complaint(from: string, to: string): string | undefined {
  const a = roomOf(from)
  const b = roomOf(to)
  if (a.inner === b.inner) return undefined
  const [upper, lower] = [layerOf.get(a.room), layerOf.get(b.room)]
  if (upper === undefined) return `room ${a.room} is not named in scripts/check-layering.ts`
  if (lower === undefined) return `room ${b.room} is not named in scripts/check-layering.ts`
  if (a.room !== b.room && (lower < upper || (lower === upper && !sideways[a.room]?.includes(b.room)))) {
    return `${a.room} may not import ${b.room}: arrows point downward`
  }
  if (a.room === b.room && from.startsWith(`${b.inner}/`)) return undefined
  const entry = `${b.inner}/index.ts`
  if (to !== entry && a.room !== b.room) return `enter ${b.inner} by ${entry}`
  return undefined
}

let failures = 0
for (const file of globSync('**/*.ts', { cwd: src })) {
  if (/^(?:proto|api)\/gen\//.test(file)) continue
  const text = readFileSync(join(src, file), 'utf8')
  for (const match of text.matchAll(importPattern)) {
    const target = match[1] ?? match[2] ?? ''
    const to = relative(src, normalize(join(src, dirname(file), target)))
    const why = to.startsWith('..') ? undefined : complaint(file, to)
    if (why === undefined) continue
    failures += 1
    process.stderr.write(`src/${file}: imports ${to}: ${why}\n`)
  }
}
if (failures > 0) process.exitCode = 1
