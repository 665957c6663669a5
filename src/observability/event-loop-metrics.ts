// How busy a thread is and how late its event loop runs, measured by the thread itself a few times a second.
import type { MetricFamilies } from './metrics.ts'

const samplingMs = 100
const bounds = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10]

/** Starts measuring this thread; `worker` is the label of its series. The timer does not keep the thread running. */
export function startEventLoopMetrics(families: MetricFamilies, worker: string): Disposable {
  const delay = families
    .histogram({
      name: 'lateen_event_loop_delay_seconds',
      help: 'How late a timer of the thread runs, sampled ten times a second',
      labels: ['worker'],
      bounds,
    })
    .with({ worker })
  const seconds = (name: string, help: string) =>
    families.counter({ name, help, labels: ['worker'] as const }).with({ worker })
  const active = seconds('lateen_event_loop_active_seconds_total', 'Time the event loop of the thread was at work')
  const idle = seconds('lateen_event_loop_idle_seconds_total', 'Time the event loop of the thread had nothing to do')
  const cpu = seconds('lateen_thread_cpu_seconds_total', 'User and system CPU time of the thread')
  let sampled = performance.now()
  let before = performance.eventLoopUtilization()
  let cpuSeconds = 0

  function sample(): void {
    const now = performance.now()
    delay.observe(Math.max(0, now - sampled - samplingMs) / 1e3)
    sampled = now
    const after = performance.eventLoopUtilization()
    active.inc((after.active - before.active) / 1e3)
    idle.inc((after.idle - before.idle) / 1e3)
    before = after
    const { user, system } = process.threadCpuUsage()
    const used = (user + system) / 1e6
    cpu.inc(used - cpuSeconds)
    cpuSeconds = used
  }

  const timer = setInterval(sample, samplingMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
