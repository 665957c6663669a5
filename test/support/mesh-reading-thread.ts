// A thread that reads the mesh without pause while another one writes it, and tells what it saw that cannot be.
import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { type MeshPublication, openMeshReader } from '../../src/ztunnel/state/index.ts'

const mesh = openMeshReader(workerData.memory, workerData.reader)
let reads = 0
let moves = 0
let failure: string | undefined

/** All workloads are of one push, and every index says the same of them. */
function check(): void {
  const all = [...mesh.workloads()]
  assert.ok(all.length === 20 || all.length === 19)
  for (const one of all) {
    assert.equal(one.name, all[0]?.name)
    assert.equal(mesh.workload(one.uid), mesh.workloadByAddress('', one.addresses[0] ?? ''))
    assert.deepEqual(mesh.workload(one.uid), one)
    const number = Number(one.name.slice(1))
    assert.deepEqual([...one.services], [[`n/s${number % 7}.example`, new Map([[80, number]])]])
  }
  const [[key, members] = [], ...others] = [...mesh.stagedServices()]
  assert.equal(others.length, 0)
  assert.deepEqual([...(members ?? [])].map((one) => one.uid).sort(), all.map((one) => one.uid).sort())
  assert.ok(all[0]?.services.has(key ?? ''))
  reads += all.length
}

parentPort?.on('message', (message: MeshPublication | 'end') => {
  try {
    if (message === 'end') {
      parentPort?.postMessage({ failure, reads, generation: moves })
      return
    }
    mesh.advance(message)
    moves += 1
    check()
  } catch (error) {
    failure ??= String(error)
  }
})
parentPort?.postMessage('ready')
