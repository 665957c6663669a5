// A thread that reads the mesh: it tells how long its event loop stood still, and routes to a service when asked to.
import { parentPort, workerData } from 'node:worker_threads'
import { type MeshPublication, openMeshReader } from '../../src/ztunnel/state/index.ts'

const mesh = openMeshReader(workerData.memory, workerData.reader)
let longestMs = 0
let last = performance.now()
let watching = false

function watch(): void {
  const now = performance.now()
  longestMs = Math.max(longestMs, now - last)
  last = now
  if (watching) setTimeout(watch, 1)
}

parentPort?.on('message', (message: MeshPublication | 'watch' | 'stop') => {
  if (message === 'watch') {
    watching = true
    longestMs = 0
    last = performance.now()
    watch()
    parentPort?.postMessage('watching')
  } else if (message === 'stop') {
    watching = false
    watch()
    parentPort?.postMessage({ longestMs, workload: mesh.workloadByAddress('network', '10.0.0.1')?.uid })
  } else {
    mesh.advance(message)
  }
})
parentPort?.postMessage('ready')
