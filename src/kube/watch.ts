// One watch request: the events of its stream, in the batches in which they arrive.
import type { KubeObject } from '../api/index.ts'
import { errorOfConnection, errorOfResponse, errorOfStatus } from './errors.ts'
import { readText, type Transport } from './transport.ts'
import type { WatchEvent } from './types.ts'

/** Asked of the server for each watch, in seconds, varied so that clients don't return all at once. */
const watchSeconds = { least: 300, most: 600 }
/** Beyond the asked duration: a server that doesn't end the watch by then is taken for dead. */
const overtimeMs = 30_000
/** A server answers a watch at once, even when there is nothing to tell yet. */
const headTimeoutMs = 60_000

/**
 * Runs one watch until the server ends it. Calls `onEvents` with the events of each chunk of data.
 * Rejects with a KubeError: code 410 when the resource version is too old, 0 when the connection broke.
 */
export async function watchOnce<T extends KubeObject>(
  transport: Transport,
  pathFor: (timeoutSeconds: number) => string,
  onEvents: (events: readonly WatchEvent<T>[]) => void,
  signal: AbortSignal,
  answerWithinMs = headTimeoutMs,
): Promise<void> {
  const seconds = watchSeconds.least + Math.floor(Math.random() * (watchSeconds.most - watchSeconds.least))
  const path = pathFor(seconds)
  const name = `watch ${path}`
  const response = await transport.send({
    path,
    signal,
    idleTimeoutMs: seconds * 1000 + overtimeMs,
    headTimeoutMs: answerWithinMs,
  })
  if (response.statusCode !== 200) {
    const text = await readText(response)
    throw errorOfResponse(name, response.statusCode ?? 0, text, response.headers['retry-after'])
  }
  response.setEncoding('utf8')
  let rest = ''
  try {
    for await (const chunk of response as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      const events = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as WatchLine<T>)
      const failure = events.findIndex((event) => event.type === 'ERROR')
      const good = failure === -1 ? events : events.slice(0, failure)
      if (good.length > 0) onEvents(good as WatchEvent<T>[])
      if (failure !== -1) throw errorOfStatus(name, events[failure]?.object)
    }
  } catch (cause) {
    response.destroy()
    throw cause instanceof Error && cause.name === 'KubeError' ? cause : errorOfConnection(name, cause)
  }
}

type WatchLine<T> = WatchEvent<T> | { readonly type: 'ERROR'; readonly object: unknown }
