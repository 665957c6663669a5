// What a worker is started with.
import type { ThreadStart } from '../../observability/index.ts'
import type { MeshMemory } from '../state/index.ts'
import type { TunnelBalanceOptions } from './tunnel-balance.ts'
import type { Vitals } from './vitals.ts'
import type { WorkerConfig } from './worker-config.ts'

export interface WorkerData {
  readonly index: number
  readonly config: WorkerConfig
  readonly mesh: MeshMemory
  readonly vitals: Vitals
  readonly tunnels: Pick<TunnelBalanceOptions, 'counts' | 'links'>
  readonly observability: ThreadStart
}
