// Waits for what nobody tells: it is looked at again and again.
import { setTimeout as sleep } from 'node:timers/promises'
import { isKubeError } from '../../src/kube/index.ts'

const pauseMs = 20

/** Waits until it holds; fails after that time with what did not come about. */
export async function eventually(
  holds: () => boolean | Promise<boolean>,
  what: string | (() => string),
  withinMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > deadline) {
      throw new Error(`did not come about in ${withinMs / 1_000} s: ${typeof what === 'string' ? what : what()}`)
    }
    await sleep(pauseMs)
  }
}

/** Does it again while the API server answers with that code, for up to half a minute: it takes up definitions and policies some moments after they were written. */
export async function onceAccepted<T>(code: number, work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 30_000
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isKubeError(error, code) || performance.now() > deadline) throw error
      await sleep(pauseMs)
    }
  }
}
