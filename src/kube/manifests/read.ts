// Manifests from files, folders and standard input, with where each field stands.
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../api/index.ts'

export type FieldPath = readonly (string | number)[]

/** One object of a manifest file. */
export interface Manifest {
  readonly object: KubeObject
  /** The file, or `-` for standard input. */
  readonly file: string
  /** Line of a field, or of the nearest field above it that the file has. */
  lineOf(path: FieldPath): number
}

/** One thing wrong in a manifest. */
export interface ManifestProblem {
  readonly file: string
  readonly line?: number
  /** As `spec.ports[0].name`. */
  readonly field?: string
  readonly message: string
}

/** Everything that is wrong in a set of manifests, found before any of them is used. */
export class ManifestError extends Error {
  readonly code = 'INVALID_MANIFEST'
  readonly problems: readonly ManifestProblem[]
  constructor(problems: readonly ManifestProblem[]) {
    super(problems.map(describeProblem).join('\n'))
    this.name = 'ManifestError'
    this.problems = problems
  }
}

/** `file:line: field: message`. */
export function describeProblem({ file, line, field, message }: ManifestProblem): string {
  const place = line === undefined ? file : `${file}:${line}`
  return field === undefined || field === '' ? `${place}: ${message}` : `${place}: ${field}: ${message}`
}

/**
 * Reads YAML or JSON manifests: files, folders (their `.yaml`, `.yml` and `.json` files, by name), `-` for standard input. Lists are
 * taken apart. Throws a ManifestError with all that is wrong.
 */
export function readManifests(inputs: readonly string[], readStandardInput: () => string): Manifest[] {
  const problems: ManifestProblem[] = []
  const manifests: Manifest[] = []
  for (const input of inputs) {
    const before = manifests.length + problems.length
    if (input === '-') manifests.push(...parseManifests(readStandardInput(), '-', problems))
    else if (!existsSync(input)) problems.push({ file: input, message: 'no such file or folder' })
    else {
      const files = filesOf(input)
      if (files.length === 0) problems.push({ file: input, message: 'holds no .yaml, .yml or .json file' })
      for (const file of files) manifests.push(...parseManifests(readFileSync(file, 'utf8'), file, problems))
    }
    if (manifests.length + problems.length === before) problems.push({ file: input, message: 'holds no object' })
  }
  const seen = new Map<string, Manifest>()
  for (const manifest of manifests) {
    const { apiVersion, kind, metadata } = manifest.object
    const key = `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`
    const first = seen.get(key)
    if (first === undefined) seen.set(key, manifest)
    else {
      const place = `${first.file}:${first.lineOf([])}`
      problems.push({
        file: manifest.file,
        line: manifest.lineOf([]),
        message: `${kind} ${metadata.name} stands in ${place} too`,
      })
    }
  }
  if (problems.length > 0) throw new ManifestError(problems)
  return manifests
}

function filesOf(input: string): string[] {
  if (!statSync(input).isDirectory()) return [input]
  return globSync('*.{yaml,yml,json}', { cwd: input })
    .sort()
    .map((name) => join(input, name))
}

/** The objects of one file's text. What is wrong is added to `problems`. */
export function parseManifests(text: string, file: string, problems: ManifestProblem[]): Manifest[] {
  if (text.includes('\0') || text.includes('\uFFFD')) {
    problems.push({ file, message: 'is no text in UTF-8: expected YAML or JSON' })
    return []
  }
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true })
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document) => {
    if (document.errors.length > 0) {
      for (const error of document.errors) {
        problems.push({ file, line: error.linePos?.[0].line ?? 1, message: firstLine(error.message) })
      }
      return []
    }
    let value: unknown
    try {
      value = document.toJS()
    } catch (error) {
      // Aliases that would make it very large.
      problems.push({ file, line: lineOf(document.contents, [], lines), message: firstLine((error as Error).message) })
      return []
    }
    return value === null ? [] : objectsOf(value, document.contents, file, lines, problems)
  })
}

function firstLine(message: string): string {
  return (message.split('\n')[0] ?? message).replace(/ at line \d+, column \d+:?$/, '')
}

function objectsOf(
  value: unknown,
  contents: Node | null,
  file: string,
  lines: LineCounter,
  problems: ManifestProblem[],
): Manifest[] {
  const lineBelow =
    (prefix: FieldPath) =>
    (path: FieldPath): number =>
      lineOf(contents, [...prefix, ...path], lines)
  const items = (value as { kind?: unknown; items?: unknown } | null)?.items
  if (isRecord(value) && typeof value.kind === 'string' && value.kind.endsWith('List') && Array.isArray(items)) {
    return items.flatMap((item, index) => check(item, file, lineBelow(['items', index]), problems))
  }
  return check(value, file, lineBelow([]), problems)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function check(value: unknown, file: string, line: Manifest['lineOf'], problems: ManifestProblem[]): Manifest[] {
  const before = problems.length
  const complain = (path: FieldPath, message: string): void => {
    problems.push({ file, line: line(path), field: fieldText(path), message })
  }
  if (!isRecord(value)) {
    complain([], 'expected an object with apiVersion, kind and metadata')
    return []
  }
  const text = (path: FieldPath, of: unknown, example: string): void => {
    if (typeof of !== 'string' || of === '') complain(path, `expected a text such as ${example}`)
  }
  text(['apiVersion'], value.apiVersion, 'networking.istio.io/v1')
  text(['kind'], value.kind, 'Service')
  const { metadata } = value
  if (!isRecord(metadata)) complain(['metadata'], 'expected an object with a name')
  else {
    text(['metadata', 'name'], metadata.name, 'reviews')
    if (metadata.namespace !== undefined) text(['metadata', 'namespace'], metadata.namespace, 'default')
  }
  return problems.length > before ? [] : [{ object: value as unknown as KubeObject, file, lineOf: line }]
}

/** `['spec', 'ports', 0]` as `spec.ports[0]`. */
export function fieldText(path: FieldPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const plain = /^[A-Za-z_][\w-]*$/.test(part)
    return plain ? (text === '' ? part : `${text}.${part}`) : `${text}[${part}]`
  }, '')
}

/** `spec.ports[0].name`, `.spec.ports`, `metadata.labels[a.b/c]` as a path. */
export function parseField(text: string): FieldPath {
  return [...text.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, index, name]) => {
    if (name !== undefined) return name
    const inside = index ?? ''
    return /^\d+$/.test(inside) ? Number(inside) : inside.replace(/^"(.*)"$/, '$1')
  })
}

function lineOf(root: Node | null, path: FieldPath, lines: LineCounter): number {
  let offset = root?.range?.[0] ?? 0
  let node: unknown = root
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      if (pair === undefined) break
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(part)]
      if (!isNode(node)) break
      offset = node.range?.[0] ?? offset
    } else break
  }
  return lines.linePos(offset).line
}
