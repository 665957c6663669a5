// Questions and answers between two threads over one channel of messages, in the order they were posted.
import { CallError } from './errors.ts'

/** What calls add to the messages of a channel. */
export type CallMessage<Call> =
  | { readonly kind: 'call'; readonly id: number; readonly call: Call }
  /** Who asked no longer wants to know. */
  | { readonly kind: 'cancel'; readonly id: number }
  | { readonly kind: 'result'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly code: string; readonly message: string }

export interface CallOptions {
  /** Absent: as long as it takes. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

type Named = { readonly kind: string }

export interface Calls<Out extends Named, Results extends Record<Out['kind'], unknown>, In extends Named> {
  /**
   * Asks the other thread. Rejects with a CallError: with the code of the error there, TIMEOUT without an answer in time, ABORTED by
   * the signal, or ENDED when the channel has ended.
   */
  call<C extends Out>(call: C, options?: CallOptions): Promise<Results[C['kind']]>
  /** Takes a message that arrived. */
  receive(message: CallMessage<In>): void
  /** Nothing will arrive any more: what waits for an answer rejects with this reason. */
  end(reason: string): void
}

export interface CallsOptions<In extends Named> {
  readonly post: (message: CallMessage<Named>) => void
  /** Answers a call of the other thread. The signal aborts when nobody waits for the answer any more. */
  readonly serve: (call: In, signal: AbortSignal) => Promise<unknown>
}

interface Waiting {
  settle(): void
  resolve(result: unknown): void
  reject(error: CallError): void
}

export function createCalls<Out extends Named, Results extends Record<Out['kind'], unknown>, In extends Named>(
  options: CallsOptions<In>,
): Calls<Out, Results, In> {
  const { post, serve } = options
  const waiting = new Map<number, Waiting>()
  const serving = new Map<number, AbortController>()
  let lastId = 0
  let ended: string | undefined

  function answer(id: number, call: In): void {
    const controller = new AbortController()
    serving.set(id, controller)
    const reply = (message: CallMessage<Named>): void => {
      serving.delete(id)
      if (ended === undefined && !controller.signal.aborted) post(message)
    }
    serve(call, controller.signal).then(
      (result) => reply({ kind: 'result', id, result }),
      (error: unknown) => reply({ kind: 'failure', id, code: codeOf(error), message: messageOf(error) }),
    )
  }

  function take(id: number): Waiting | undefined {
    const found = waiting.get(id)
    waiting.delete(id)
    found?.settle()
    return found
  }

  return {
    call(call, { timeoutMs, signal } = {}) {
      return new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(new CallError('ENDED', ended))
        if (signal?.aborted) return reject(new CallError('ABORTED', `no longer asked: ${call.kind}`))
        lastId += 1
        const id = lastId
        const giveUp = (error: CallError): void => {
          take(id)?.reject(error)
          post({ kind: 'cancel', id })
        }
        const abort = (): void =>
          giveUp(new CallError('ABORTED', `no longer asked: ${call.kind}`, { cause: signal?.reason }))
        const expire = (): void => giveUp(new CallError('TIMEOUT', `no answer in ${timeoutMs} ms: ${call.kind}`))
        const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs)
        signal?.addEventListener('abort', abort, { once: true })
        waiting.set(id, {
          settle() {
            clearTimeout(timer)
            signal?.removeEventListener('abort', abort)
          },
          // Results cross as they are between threads of one program: the kind of the call says what its result is.
          resolve: (result) => resolve(result as Results[typeof call.kind]),
          reject,
        })
        post({ kind: 'call', id, call })
      })
    },
    receive(message) {
      switch (message.kind) {
        case 'call':
          return answer(message.id, message.call)
        case 'cancel':
          serving.get(message.id)?.abort()
          return
        case 'result':
          take(message.id)?.resolve(message.result)
          return
        case 'failure':
          take(message.id)?.reject(new CallError(message.code, message.message))
          return
      }
    },
    end(reason) {
      ended ??= reason
      for (const controller of serving.values()) controller.abort()
      for (const id of [...waiting.keys()]) take(id)?.reject(new CallError('ENDED', reason))
    },
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'FAILED'
}
