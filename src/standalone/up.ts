// `lateen up`: an instance from its first step to the signal that ends it.
import { applyManifests, type KubeClient, type Manifest } from '../kube/index.ts'
import { reserveApiPort } from './api-port.ts'
import { awaitedPods } from './awaited-pods.ts'
import { removeState } from './clean.ts'
import { waitUntil } from './cluster-wait.ts'
import { StandaloneError } from './error.ts'
import { explainFailure } from './explain-pods.ts'
import { type Instance, startInstance } from './instance.ts'
import { holdName, runningUp, watchRemoval, writeProgress, writeUpRecord } from './instance-lock.ts'
import { instancePaths } from './paths.ts'
import { ensurePrerequisites, systemPath } from './prerequisites.ts'
import { runRootless } from './rootless.ts'
import { prepareStateDirectory } from './state-directory.ts'
import { overview, whatToTry } from './summary.ts'
import { typedCommand } from './typed-command.ts'
import { type Checked, checkRunning } from './up-check.ts'

export interface UpOptions {
  readonly stateDir: string
  readonly nodes: number
  readonly mesh: boolean
  readonly trustBundle: boolean
  readonly manifests: readonly Manifest[]
  readonly print: (line: string) => void
  readonly signal: AbortSignal
  /** The command line after `lateen`, to run again where this user is root. */
  readonly words: readonly string[]
  /** Runs once everything is ready; its result is the exit code, and the instance then ends, unless it ran before. */
  readonly check?: (checked: Checked, print: (line: string) => void) => Promise<number>
}

const podsReadyMs = 120_000

/** Resolves with the exit code after the signal (or the check), when nothing is left running. */
export async function up(options: UpOptions): Promise<number> {
  const paths = instancePaths(options.stateDir)
  await prepareStateDirectory(paths.stateDir)
  await using held = await holdName(`lateen-${paths.instance}`)
  const other = await runningUp(paths.stateDir)
  if (held === undefined || (other !== undefined && other.pid !== process.pid)) {
    const { check, print } = options
    if (check !== undefined) return await checkRunning(paths, (checked) => check(checked, print))
    const which = other === undefined ? 'another process' : `process ${other.pid}`
    throw new StandaloneError(
      'ALREADY_RUNNING',
      `a mesh is already running with the state directory ${paths.stateDir} (${which}): see "${typedCommand(paths.stateDir, 'status')}", end it with "${typedCommand(paths.stateDir, 'down')}", or give another --state-dir`,
    )
  }
  process.env.PATH = systemPath(process.env.PATH)
  if (process.getuid?.() !== 0) {
    await using reserved = await reserveApiPort(paths.stateDir)
    const words = [...options.words, '--state-dir', paths.stateDir]
    return await runRootless(paths.stateDir, reserved.port, words, options.signal)
  }
  const progress = progressPrinter(options.print)
  await ensurePrerequisites(progress.note)
  await writeUpRecord(paths.stateDir)
  using removal = watchRemoval(paths.stateDir)
  const signal = AbortSignal.any([options.signal, removal.signal])
  let instance: Instance | undefined
  let completed = false
  try {
    instance = await startInstance({ ...options, signal, paths, step: progress.step, note: progress.note })
    signal.throwIfAborted()
    if (options.manifests.length > 0) await applyUserManifests(instance.client, { ...options, signal }, progress)
    progress.done()
    completed = true
    options.print(await overview(instance))
    if (options.check === undefined) options.print(whatToTry(paths, options.mesh))
    await writeProgress(paths.stateDir, 'running')
    if (options.check !== undefined) return await options.check(instance, options.print)
    await aborted(signal)
    removal.signal.throwIfAborted()
    return 0
  } catch (error) {
    removal.look()
    if (removal.signal.aborted) throw removal.signal.reason
    if (options.signal.aborted) return 130
    await writeProgress(paths.stateDir, 'failed', (error as Error).message).catch(() => undefined)
    throw error
  } finally {
    if (!completed) progress.broken()
    progress.step('stopping')
    if (instance !== undefined) {
      if (!removal.signal.aborted) await writeProgress(paths.stateDir, 'stopping').catch(() => undefined)
      await instance.stop()
    }
    if (removal.signal.aborted) await removeState(paths)
    progress.done()
  }
}

async function applyUserManifests(client: KubeClient, options: UpOptions, progress: Progress): Promise<void> {
  progress.step('manifests')
  const applied = await applyManifests(client, options.manifests, { namespace: 'default', fieldManager: 'lateen' })
  const objects = applied.map(({ object }) => object)
  const namespaces = new Set(objects.map(({ metadata }) => metadata.namespace ?? 'default'))
  progress.step('pods of the manifests')
  await waitUntil(client, ({ pods }) => awaitedPods(objects, pods), {
    timeoutMs: podsReadyMs,
    signal: options.signal,
    note: progress.note,
  })
    .catch((error: unknown) => explainFailure(error, client, namespaces))
    .catch((error: unknown) => {
      // Pods that do not become ready are the user's to look at; the mesh itself runs.
      if (!(error instanceof StandaloneError)) throw error
      progress.note(error.message)
    })
}

interface Progress {
  step(name: string): void
  note(message: string): void
  done(): void
  /** The step has failed, or was interrupted. */
  broken(): void
}

function progressPrinter(print: (line: string) => void): Progress {
  let current: { name: string; since: number } | undefined
  const end = (mark: '✓' | '✗') => {
    if (current !== undefined) print(`${mark} ${current.name} (${((Date.now() - current.since) / 1000).toFixed(1)} s)`)
    current = undefined
  }
  const done = () => end('✓')
  return {
    step(name) {
      done()
      current = { name, since: Date.now() }
    },
    note: (message) => print(`  ${message}`),
    done,
    broken: () => end('✗'),
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}
