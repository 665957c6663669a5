// How many data-plane workers to run.
import { invalidVariable } from './errors.ts'
import { type Environment, readCpuQuantity, readInteger } from './variables.ts'

/** More than any machine has use for, and fewer than shared memory has places for. */
export const mostWorkers = 512

/** From 1 to `mostWorkers`. `concurrency` is that of the proxy configuration: 0 means every CPU. */
export function workerCount(env: Environment, concurrency: number | undefined, machineCpus: number): number {
  const limit = readCpuQuantity(env, 'ZTUNNEL_RESOURCE_CPU_LIMIT')
  const request = readCpuQuantity(env, 'ZTUNNEL_RESOURCE_CPU_REQUEST') ?? 0
  const cpus = limit ?? readInteger(env, 'ZTUNNEL_CPU_LIMIT', 1) ?? machineCpus
  const fixed = fixedCount(env, cpus) ?? concurrency
  if (fixed !== undefined) return within(fixed === 0 ? cpus : fixed)
  if (limit !== undefined) return within(Math.max(limit, request))
  return within(Math.max(Math.ceil(cpus * 0.25), request, 2))
}

const within = (count: number): number => Math.min(mostWorkers, Math.max(1, count))

function fixedCount(env: Environment, cpus: number): number | undefined {
  const name = 'ZTUNNEL_WORKER_THREADS'
  const percentage = /^(\d+(?:\.\d+)?)%$/.exec(env[name] ?? '')?.[1]
  if (percentage === undefined) return readInteger(env, name, 0, mostWorkers)
  const percent = Number(percentage)
  if (percent <= 0 || percent > 100) {
    throw invalidVariable(name, env[name] ?? '', 'percentage must be between 0 and 100')
  }
  return Math.max(1, Math.ceil((cpus * percent) / 100))
}
