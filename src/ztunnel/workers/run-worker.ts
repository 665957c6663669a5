// A worker: the data plane of the pods it is told to serve, its mesh read from shared memory, its questions asked of the main thread.
import { type MessagePort, parentPort } from 'node:worker_threads'
import { formatJson, formatPlain, joinThread } from '../../observability/index.ts'
import { createKnownAuthorities } from '../certificates/authorities.ts'
import { collectWhenIdle } from '../idle-memory.ts'
import { createThreadProfiler } from '../profiling/thread-profiler.ts'
import { openMeshReader } from '../state/open-reader.ts'
import { createZtunnelMetrics } from '../telemetry/index.ts'
import { createCalls } from './calls.ts'
import { createCredentialsCache } from './credentials.ts'
import { dataPlaneOptions, ownDataPlaneOptions } from './data-plane-options.ts'
import type { MainCall, MainResults, ToMain, ToWorker, WorkerCall, WorkerResults } from './messages.ts'
import { createReceivedRevocations } from './revocations.ts'
import { createDataPlaneServices } from './services.ts'
import { createTunnelBalance } from './tunnel-balance.ts'
import { startBeating, stuckWorkers } from './vitals.ts'
import type { WorkerData } from './worker-data.ts'
import { createWorkerPods } from './worker-pods.ts'
import { createWorkerReadiness } from './worker-readiness.ts'

/** Runs until the main thread ends the thread. What it throws then, or a promise that nobody awaits, ends the process. */
export function runWorker(data: WorkerData): void {
  const port = mainThread()
  const { index, config, vitals } = data
  const post = (message: ToMain): void => port.postMessage(message)
  const format = config.logFormat === 'json' ? formatJson('message') : formatPlain
  const observability = joinThread(data.observability, { format })
  const { logging } = observability
  const metrics = createZtunnelMetrics(observability.metrics)
  const calls = createCalls<MainCall, MainResults, WorkerCall>({ post: (message) => post(message as ToMain), serve })
  const state = openMeshReader(data.mesh, index)
  const authorities = createKnownAuthorities()
  const credentials = createCredentialsCache({
    ask: (identity) => calls.call({ kind: 'certificate', identity }),
    onCertificate: ({ intermediates, roots }) => authorities.learn(...intermediates, ...roots),
  })
  const revocations = config.crlPath === undefined ? undefined : createReceivedRevocations()
  const services = createDataPlaneServices(config, {
    state,
    metrics,
    logging,
    authorities,
    credentials: credentials.get,
    ...(revocations === undefined ? {} : { revocations }),
    askAddress: (key, { timeoutMs, signal }) =>
      calls.call({ kind: 'address', key, timeoutMs }, signal === undefined ? {} : { signal }),
  })
  const pods = createWorkerPods(
    { pods: dataPlaneOptions(config), own: ownDataPlaneOptions(config) },
    services,
    (id, socket) => balance.place(id, socket),
  )
  const balance = createTunnelBalance({
    index,
    ...data.tunnels,
    stuck: () => stuckWorkers(vitals),
    canTake: pods.serves,
    take: pods.takeTunnel,
  })
  const readiness = createWorkerReadiness(vitals, logging.scope('ztunnel', 'The process'))
  const profiler = createThreadProfiler()
  const stopBeating = startBeating(vitals, index)
  const idleMemory = collectWhenIdle()

  async function serve(call: WorkerCall): Promise<WorkerResults[WorkerCall['kind']]> {
    switch (call.kind) {
      case 'start-pod':
        await pods.start(call.order)
        return undefined
      case 'drain-pod':
        await pods.drain(call.id)
        return undefined
      case 'stop-pod':
        pods.stop(call.id, call.reason)
        return undefined
      case 'connections':
        return pods.connections()
      case 'serve-readiness':
        await readiness.serve(call.fd)
        return undefined
      case 'cpu-profile':
        return await profiler.sampleCpu(call)
      case 'heap-sampling':
        await profiler.setHeapSampling(call.intervalBytes)
        return undefined
      case 'heap-profile':
        return await profiler.heapProfile()
      case 'close':
        await pods.stopAll(call.reason)
        balance[Symbol.dispose]()
        await readiness[Symbol.asyncDispose]()
        stopBeating()
        idleMemory[Symbol.dispose]()
        return undefined
    }
  }

  port.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'mesh':
        return state.advance(message.publication)
      case 'certificate':
      case 'no-certificate':
        return credentials.receive(message)
      case 'pending':
        return readiness.setPending(message.tasks)
      case 'revocations':
        return revocations?.receive(message.source)
      default:
        return calls.receive(message)
    }
  })
  port.on('messageerror', (error) => {
    throw error
  })
  post({ kind: 'started' })
}

function mainThread(): MessagePort {
  if (parentPort === null) throw new Error('a worker runs in a thread of its own')
  return parentPort
}
