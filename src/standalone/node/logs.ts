// Reads a container's log: the last lines, a limit, and what is still to come.
import { type FSWatcher, watch } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { positionSince, readLogTimes, timeAt } from './log-times.ts'

export interface LogOptions {
  readonly follow: boolean
  readonly tailLines?: number
  readonly limitBytes?: number
  /** Only what was written at or after this time. */
  readonly sinceMs?: number
  /** Begins each line with the time at which it was written. */
  readonly timestamps?: boolean
  readonly signal: AbortSignal
  /** Whether more can come; a log of an ended run is followed to its end only. */
  readonly running: () => boolean
}

const chunkBytes = 64 * 1024

/** Writes the log to `output`, at its pace; resolves at the end. */
export async function writeLog(path: string, output: Writable, options: LogOptions): Promise<void> {
  await using file = await openLog(path)
  const tail = options.tailLines === undefined ? 0 : await tailPosition(file.handle, options.tailLines)
  const since = options.sinceMs === undefined ? 0 : positionSince(await readLogTimes(path), options.sinceMs)
  let position = Math.max(tail, since)
  const stamp = options.timestamps === true ? lineStamper(path) : undefined
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY
  const buffer = Buffer.alloc(chunkBytes)
  using changes = watchChanges(path, options.signal)
  while (left > 0 && !options.signal.aborted) {
    const { bytesRead } = await file.handle.read(buffer, 0, Math.min(chunkBytes, left), position)
    if (bytesRead > 0) {
      const chunk = Buffer.from(buffer.subarray(0, bytesRead))
      await write(output, stamp === undefined ? chunk : await stamp(chunk, position), options.signal)
      position += bytesRead
      left -= bytesRead
      continue
    }
    if (!options.follow || !options.running()) return
    const { size } = await file.handle.stat()
    if (size < position)
      position = 0 // the log was rotated
    else await changes.next()
  }
}

/** Puts the time in front of each line; chunks come in order. */
function lineStamper(path: string): (chunk: Buffer, position: number) => Promise<Buffer> {
  let isLineStart = true
  return async (chunk, position) => {
    const times = await readLogTimes(path)
    const parts: Buffer[] = []
    for (let begin = 0; begin < chunk.length; ) {
      const newline = chunk.indexOf(0x0a, begin)
      const end = newline === -1 ? chunk.length : newline + 1
      if (isLineStart)
        parts.push(Buffer.from(`${new Date(timeAt(times, position + begin) ?? Date.now()).toISOString()} `))
      parts.push(chunk.subarray(begin, end))
      isLineStart = newline !== -1
      begin = end
    }
    return Buffer.concat(parts)
  }
}

async function openLog(path: string): Promise<AsyncDisposable & { handle: FileHandle }> {
  const handle = await open(path, 'r')
  return { handle, [Symbol.asyncDispose]: () => handle.close() }
}

/** Where the last `lines` lines begin. */
export async function tailPosition(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat()
  if (lines <= 0) return size
  const buffer = Buffer.alloc(chunkBytes)
  let end = size
  let seen = 0
  while (end > 0) {
    const begin = Math.max(0, end - chunkBytes)
    const { bytesRead } = await file.read(buffer, 0, end - begin, begin)
    for (let index = bytesRead - 1; index >= 0; index -= 1) {
      if (buffer[index] !== 0x0a || begin + index === size - 1) continue
      seen += 1
      if (seen === lines) return begin + index + 1
    }
    end = begin
  }
  return 0
}

function write(output: Writable, chunk: Buffer, signal: AbortSignal): Promise<void> {
  if (output.write(chunk)) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  output.once('drain', resolve)
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

function watchChanges(path: string, signal: AbortSignal): Disposable & { next(): Promise<void> } {
  let wake: () => void = () => undefined
  let changed = false
  const notice = () => {
    changed = true
    wake()
  }
  const watcher: FSWatcher = watch(path, { persistent: false }, notice)
  watcher.on('error', notice)
  // The end of the run changes no byte of the log.
  const timer = setInterval(notice, 500)
  signal.addEventListener('abort', notice, { once: true })
  return {
    async next() {
      if (!changed) await new Promise<void>((resolve) => (wake = resolve))
      changed = false
    },
    [Symbol.dispose]() {
      watcher.close()
      clearInterval(timer)
    },
  }
}
