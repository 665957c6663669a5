// Signing material that the user supplies as files: found, read, and read again when it changes.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isBundleSubsetEitherWay, isSameBundle } from '../../util/index.ts'
import type { SelfAuthority } from './authority.ts'
import { MaterialError } from './errors.ts'
import { isSameMaterial, type MaterialPem, type SigningMaterial, signingMaterial } from './material.ts'
import { generatedMark, secretKeys } from './secrets.ts'

export type CaSource =
  | { readonly kind: 'plugged'; readonly layout: 'istio' | 'tls' }
  /** No files, or files that the CA made itself: its Secret is the source. */
  | { readonly kind: 'self-signed' }

/** The files of a CA directory by name, as text. */
export type CaFiles = Readonly<Record<string, string>>

const tlsFiles = ['tls.crt', 'tls.key', 'ca.crt'] as const
const istioFiles = [secretKeys.certificate, secretKeys.key, secretKeys.roots, secretKeys.chain] as const

/**
 * What the names of the files say of the CA's kind. A root alone only adds to the bundle of a self-signed CA; any other part of a set
 * throws a MaterialError (INCOMPLETE): falling back to a self-signed root would split the trust of the mesh.
 */
export function caSourceOf(fileNames: readonly string[], useCacertsForSelfSigned = false): CaSource {
  const present = new Set(fileNames)
  const hasIstioPart = istioFiles.some((name) => name !== secretKeys.roots && present.has(name))
  const layout = present.has('tls.crt') || (present.has('tls.key') && !hasIstioPart) ? 'tls' : 'istio'
  const needed: readonly string[] = layout === 'tls' ? tlsFiles : istioFiles
  const missing = needed.filter((name) => !present.has(name))
  if (missing.length === 0) {
    return useCacertsForSelfSigned && present.has(generatedMark) ? { kind: 'self-signed' } : { kind: 'plugged', layout }
  }
  const found = needed.filter((name) => present.has(name) && name !== secretKeys.roots)
  if (found.length === 0) return { kind: 'self-signed' }
  throw new MaterialError(
    'INCOMPLETE',
    `failed to create an istiod CA: incomplete signing CA bundle detected (missing ${missing.join(', ')})`,
  )
}

/** The files of a directory; none when there is no such directory. */
export async function readCaDirectory(dir: string): Promise<CaFiles> {
  const wanted = new Set<string>([...tlsFiles, ...istioFiles, secretKeys.crl, generatedMark])
  let names: string[]
  try {
    names = await readdir(dir)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw error
  }
  const read = names
    .filter((name) => wanted.has(name))
    .map(async (name) => [name, await readFile(join(dir, name), 'utf8')] as const)
  return Object.fromEntries(await Promise.all(read))
}

/** The material of a complete set of files, valid now. Throws a MaterialError. */
export function pluggedMaterial(files: CaFiles, layout: 'istio' | 'tls', at: Date): SigningMaterial {
  return signingMaterial(layout === 'tls' ? tlsPem(files) : istioPem(files), at)
}

function istioPem(files: CaFiles): MaterialPem {
  return {
    certificate: files[secretKeys.certificate] ?? '',
    key: files[secretKeys.key] ?? '',
    roots: files[secretKeys.roots] ?? '',
    chain: files[secretKeys.chain] ?? '',
    ...(files[secretKeys.crl] === undefined ? {} : { crl: files[secretKeys.crl] }),
  }
}

function tlsPem(files: CaFiles): MaterialPem {
  const { 'tls.crt': certificate = '', 'tls.key': key = '', 'ca.crt': roots = '' } = files
  return { certificate, key, roots, chain: `${certificate}\n${roots}` }
}

/** Throws a MaterialError (ROOT_CHANGED) unless the roots are the same, or, in a mesh with several roots, one set holds the other. */
export function checkReplacement(current: SigningMaterial, next: SigningMaterial, isMultiRoot: boolean): void {
  if (isSameBundle(current.rootBundle, next.rootBundle)) return
  if (isMultiRoot && isBundleSubsetEitherWay(current.rootBundle, next.rootBundle)) return
  throw new MaterialError('ROOT_CHANGED', 'Updating new ROOT-CA not supported')
}

export interface FollowOptions {
  readonly read: () => Promise<CaFiles>
  readonly authority: SelfAuthority
  readonly isMultiRoot: boolean
  readonly onReload?: () => void
  /** The material in force stays. */
  readonly onRefusal?: (error: unknown) => void
  readonly intervalMs?: number
  readonly now?: () => Date
}

/** Puts changed files in force until the signal ends it. Reading a directory by path follows replaced symbolic links. */
export async function followCaFiles(options: FollowOptions, signal: AbortSignal): Promise<void> {
  const { read, authority, isMultiRoot, onReload, onRefusal, intervalMs = 1_000, now = () => new Date() } = options
  let inForce = ''
  let refusedFor = ''
  while (!signal.aborted) {
    try {
      await delay(intervalMs, undefined, { signal, ref: false })
    } catch {
      return
    }
    let text = ''
    try {
      const files = await read()
      text = JSON.stringify(files)
      if (text === inForce) {
        refusedFor = ''
        continue
      }
      const source = caSourceOf(Object.keys(files))
      if (source.kind === 'self-signed') throw new MaterialError('INCOMPLETE', 'the signing files are gone')
      const next = pluggedMaterial(files, source.layout, now())
      const isNew = !isSameMaterial(authority.material, next)
      if (isNew) checkReplacement(authority.material, next, isMultiRoot)
      inForce = text
      refusedFor = ''
      if (!isNew) continue
      authority.replace(next)
      onReload?.()
    } catch (error) {
      // Tried again: what is not valid yet will be. Told once for these files and this reason.
      const why = `${error instanceof Error ? error.message : String(error)}\n${text}`
      if (why !== refusedFor) onRefusal?.(error)
      refusedFor = why
    }
  }
}
