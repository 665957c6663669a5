// The main thread's end of a worker's metrics.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { MergedFamilies, MergedFamily } from './merged-families.ts'
import type { PlaceFreed, ThreadMetricsNews } from './thread-metrics.ts'

/** Adds what the thread at the other end of the port counts, until the port closes or the link is disposed of. */
export function followThreadMetrics(port: MessagePort, merged: MergedFamilies): Disposable {
  const source = {}
  const families: MergedFamily[] = []
  const chunks: Float64Array[] = []
  let ended = false

  function apply(news: ThreadMetricsNews): void {
    switch (news.kind) {
      case 'family':
        families.push(merged.declare(news.shape))
        return
      case 'chunk':
        chunks.push(news.cells)
        return
      case 'opened': {
        const cells = chunks[news.chunk]
        if (cells !== undefined) families[news.family]?.hold(news.key, source, { cells, at: news.at })
        return
      }
      case 'closed': {
        const family = families[news.family]
        if (family === undefined) return
        family.release(news.key, source)
        const freed: PlaceFreed = { chunk: news.chunk, at: news.at, count: family.cells }
        port.postMessage(freed)
        return
      }
    }
  }

  function end(): void {
    if (ended) return
    ended = true
    merged.retire(source)
  }

  function close(): void {
    if (ended) return
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      apply(next.message as ThreadMetricsNews)
    }
    end()
    port.close()
  }

  port.on('message', apply)
  // Comes behind every message; to look for more in a port that is closed crashes the runtime.
  port.on('close', end)
  port.unref()
  return { [Symbol.dispose]: close }
}
