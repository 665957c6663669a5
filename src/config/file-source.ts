// Configuration from a directory of manifests, read again when a file changes. Of a file that cannot be read the last good content stays.
import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { KubeObject, Resource } from '../api/index.ts'
import { describeProblem, type Manifest, type ManifestProblem, parseField, parseManifests } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { createObjectStore } from './object-store.ts'
import { type ConfigSource, kindKey, kindOf, nameKey } from './source.ts'

export interface FileSource extends ConfigSource, AsyncDisposable {
  /** `file:line` of a field of an object that this source gave. */
  whereIs(object: KubeObject, field: string): string | undefined
  /** What cannot be read at present. */
  readonly problems: readonly ManifestProblem[]
}

export interface FileSourceOptions {
  readonly dir: string
  /** Objects of other kinds are left out. */
  readonly kinds: readonly Resource[]
  readonly log: Scope
  /** How often files are looked at where the system does not tell of changes. */
  readonly pollMs?: number
}

interface FileContent {
  readonly text: string
  readonly manifests: readonly Manifest[]
  readonly problems: readonly ManifestProblem[]
}

const settleMs = 50
const deepest = 20

/** Reads the directory once before it returns. Throws when there is no such directory. */
export function openFileSource(options: FileSourceOptions): FileSource {
  const { dir, log } = options
  const store = createObjectStore()
  const kinds = new Map(options.kinds.map((resource) => [kindKey(resource), resource]))
  const files = new Map<string, FileContent>()
  const origins = new WeakMap<KubeObject, Manifest>()
  let problems: readonly ManifestProblem[] = []
  let reported = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const watchers = new Map<string, FSWatcher>()

  function scan(): void {
    const tree = readTree(dir)
    watchAll(tree.directories)
    const present = new Map(tree.files.map((file) => [file, readFileSync(file, 'utf8')]))
    let isChanged = files.size === 0
    for (const file of files.keys()) {
      if (!present.has(file)) isChanged = files.delete(file)
    }
    for (const [file, text] of present) {
      const known = files.get(file)
      if (known?.text === text) continue
      isChanged = true
      files.set(file, read(file, text, known?.manifests ?? []))
    }
    if (isChanged) publish()
  }

  /** Each directory by itself: a watch of a whole tree loses files that are replaced by others. */
  function watchAll(directories: readonly string[]): void {
    for (const [directory, watcher] of watchers) {
      if (directories.includes(directory)) continue
      watcher.close()
      watchers.delete(directory)
    }
    for (const directory of directories) {
      if (watchers.has(directory)) continue
      try {
        const watcher = watch(directory, soon)
        // Without the system's help files are still looked at from time to time.
        watcher.on('error', () => watcher.close())
        watchers.set(directory, watcher)
      } catch {
        // The same.
      }
    }
  }

  function soon(): void {
    if (closed) return
    clearTimeout(timer)
    timer = setTimeout(rescan, settleMs)
  }

  function read(file: string, text: string, lastGood: readonly Manifest[]): FileContent {
    const found: ManifestProblem[] = []
    const manifests = parseManifests(text, file, found)
    return { text, manifests: found.length === 0 ? manifests : lastGood, problems: found }
  }

  function publish(): void {
    const objects = new Map<string, KubeObject>()
    const found: ManifestProblem[] = [...files.values()].flatMap((content) => content.problems)
    for (const file of [...files.keys()].sort()) {
      for (const manifest of files.get(file)?.manifests ?? []) {
        const object = placed(manifest.object)
        if (object === undefined) continue
        const key = `${kindOf(object)} ${nameKey(object.metadata)}`
        const first = objects.get(key)
        if (first === undefined) {
          origins.set(object, manifest)
          objects.set(key, object)
          continue
        }
        const message = `${object.kind} ${nameKey(object.metadata)} stands in ${whereIs(first, '')} too; that one counts`
        found.push({ file, line: manifest.lineOf([]), message })
      }
    }
    problems = found
    const texts = new Set(found.map(describeProblem))
    for (const text of texts) {
      if (!reported.has(text)) log.error('a configuration file is invalid', { problem: text })
    }
    reported = texts
    store.replaceAll([...objects.values()])
  }

  /** With the namespace it belongs to and the version we read it in; undefined for kinds that are not ours. */
  function placed(object: KubeObject): KubeObject | undefined {
    const resource = kinds.get(kindOf(object))
    if (resource === undefined) return undefined
    const namespace = resource.namespaced ? { namespace: object.metadata.namespace ?? 'default' } : {}
    return { ...object, metadata: { ...object.metadata, ...namespace } }
  }

  function whereIs(object: KubeObject, field: string): string | undefined {
    const manifest = origins.get(object)
    return manifest === undefined ? undefined : `${manifest.file}:${manifest.lineOf(parseField(field))}`
  }

  function rescan(): void {
    clearTimeout(timer)
    try {
      scan()
    } catch (error) {
      log.error('the configuration directory cannot be read; what was read stays', { dir, reason: String(error) })
    }
    timer = setTimeout(rescan, options.pollMs ?? 2_000)
  }

  scan()
  store.markSynced()
  timer = setTimeout(rescan, options.pollMs ?? 2_000)
  return {
    informer: (resource) => store.informer(resource),
    whereIs,
    get problems() {
      return problems
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer)
      closed = true
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

interface Tree {
  readonly files: readonly string[]
  readonly directories: readonly string[]
}

/** Manifests below the directory, through links. Names with a leading dot are not looked at: mounted ConfigMaps keep their versions there. */
function readTree(dir: string, depth = 0): Tree {
  const files: string[] = []
  const directories = [dir]
  if (depth > deepest) return { files, directories }
  for (const name of readdirSync(dir).sort()) {
    if (name.startsWith('.')) continue
    const path = join(dir, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory()) {
      const below = readTree(path, depth + 1)
      files.push(...below.files)
      directories.push(...below.directories)
    } else if (stat?.isFile() && /\.(ya?ml|json)$/.test(name)) files.push(path)
  }
  return { files, directories }
}
