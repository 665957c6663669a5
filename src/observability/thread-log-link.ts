// The main thread's end of a worker's log: takes the lines out of shared memory and hands them to the sink.
import { MessageChannel } from 'node:worker_threads'
import type { LogFilter } from './levels.ts'
import { createLineRing, readLines } from './line-ring.ts'
import type { LogSink } from './sink.ts'
import type { ThreadLogStart } from './thread-logging.ts'

export interface ThreadLogLinkOptions {
  readonly sink: LogSink
  readonly filter: LogFilter
  /** The line that tells of lost lines. */
  readonly dropReport: (count: number) => string
  /** The thread has ended and everything it wrote was taken. */
  readonly onEnd: () => void
  /** Bytes of lines waiting at most; a power of two. */
  readonly size?: number
}

export interface ThreadLogLink {
  readonly start: ThreadLogStart
  readonly dropped: number
  setFilter(filter: LogFilter): void
  /** Hands over everything that waits. */
  drain(): void
  /** Drains and ends. */
  close(): void
}

const defaultSize = 1024 * 1024
const pieceBytes = 64 * 1024
const gatherMs = 20

export function createThreadLogLink(options: ThreadLogLinkOptions): ThreadLogLink {
  const { sink, filter, dropReport, onEnd, size = defaultSize } = options
  const { port1: port, port2 } = new MessageChannel()
  const memory = createLineRing(size)
  const reader = readLines(memory)
  let reported = 0
  let soon: NodeJS.Immediate | undefined
  let later: NodeJS.Timeout | undefined
  let ended = false

  /** How much was there. */
  function takePiece(): number {
    const piece = reader.read(pieceBytes)
    const { dropped } = reader
    if (dropped > reported) {
      sink.write(dropReport(dropped - reported))
      reported = dropped
    }
    if (piece.length > 0) sink.write(piece.toString(), countLines(piece))
    return piece.length
  }

  /**
   * A piece a turn, so that a thread that logs much does not hold up this one; and where that was all, what comes in the next moments is
   * left to gather, so that a line does not cost a turn.
   */
  function takeInTurns(): void {
    soon = undefined
    later = undefined
    const taken = takePiece()
    if (taken === 0 && reader.sleep()) return
    if (taken > pieceBytes / 2) soon = setImmediate(takeInTurns)
    else later = setTimeout(takeInTurns, gatherMs)
  }

  function drain(): void {
    while (takePiece() > 0);
  }

  function end(): void {
    if (ended) return
    ended = true
    clearImmediate(soon)
    clearTimeout(later)
    drain()
    onEnd()
  }

  function close(): void {
    end()
    port.close()
  }

  port.on('message', () => {
    if (!ended && later === undefined) soon ??= setImmediate(takeInTurns)
  })
  port.on('close', end)
  port.unref()
  return {
    start: { port: port2, memory, filter },
    get dropped() {
      return reader.dropped
    },
    setFilter: (next) => port.postMessage(next),
    drain,
    close,
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines += 1
  return lines
}
