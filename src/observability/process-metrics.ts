// The `process_*` metrics that dashboards expect of every process, read from /proc when scraped.
import { readdirSync, readFileSync } from 'node:fs'
import type { MetricsRegistry } from './metrics.ts'

/** Registers memory, CPU, descriptor and start-time metrics of this process. */
export function registerProcessMetrics(registry: MetricsRegistry): void {
  const plain = (name: string, help: string) => registry.gauge({ name, help }).with({})
  const resident = plain('process_resident_memory_bytes', 'Resident memory size in bytes')
  const virtual = plain('process_virtual_memory_bytes', 'Virtual memory size in bytes')
  const openFds = plain('process_open_fds', 'Number of open file descriptors')
  const maxFds = plain('process_max_fds', 'Maximum number of open file descriptors')
  const started = plain('process_start_time_seconds', 'Start time of the process since the epoch in seconds')
  const cpu = registry.counter({
    name: 'process_cpu_seconds_total',
    help: 'Total user and system CPU time spent in seconds',
  })
  const cpuSeries = cpu.with({})
  let countedCpuSeconds = 0
  started.set(Date.now() / 1000 - process.uptime())
  registry.beforeCollect(() => {
    resident.set(process.memoryUsage.rss())
    const { user, system } = process.cpuUsage()
    const cpuSeconds = (user + system) / 1e6
    cpuSeries.inc(cpuSeconds - countedCpuSeconds)
    countedCpuSeconds = cpuSeconds
    if (process.platform !== 'linux') return
    openFds.set(readdirSync('/proc/self/fd').length)
    maxFds.set(readNumber('/proc/self/limits', /^Max open files\s+(\d+)/m))
    virtual.set(readNumber('/proc/self/status', /^VmSize:\s+(\d+) kB/m) * 1024)
  })
}

function readNumber(path: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(path, 'utf8'))?.[1] ?? Number.NaN)
}
