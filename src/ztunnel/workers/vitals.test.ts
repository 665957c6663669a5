import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createVitals, startBeating, stuckWorkers } from './vitals.ts'

test('a thread that does not run its event loop is stuck, and is not once it does', async () => {
  const vitals = createVitals(2)
  const stop = startBeating(vitals, 0)
  const script = `
    const { parentPort, workerData } = require('node:worker_threads')
    const pause = new Int32Array(workerData.pause)
    import(workerData.module).then(({ startBeating }) => {
      startBeating(workerData.vitals, 1)
      parentPort.postMessage('beating')
      parentPort.on('message', () => {
        parentPort.postMessage('standing still')
        Atomics.wait(pause, 0, 0)
      })
    })`
  const pause = new SharedArrayBuffer(4)
  const module = new URL('./vitals.ts', import.meta.url).href
  const worker = new Worker(script, { eval: true, workerData: { vitals, pause, module } })
  const until = async (expected: readonly number[]) => {
    const deadline = performance.now() + 10_000
    while (stuckWorkers(vitals).join() !== expected.join()) {
      assert.ok(performance.now() < deadline, `stuck are ${stuckWorkers(vitals)}, not ${expected}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  try {
    assert.deepEqual(stuckWorkers(vitals), [], 'who has not begun is not stuck')
    await once(worker, 'message')
    worker.postMessage('stand still')
    await once(worker, 'message')
    await until([1])
    Atomics.store(new Int32Array(pause), 0, 1)
    Atomics.notify(new Int32Array(pause), 0)
    await until([])
  } finally {
    stop()
    await worker.terminate()
  }
})
