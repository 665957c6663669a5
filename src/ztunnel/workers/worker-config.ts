// What of the configuration workers are given: all but what only the main thread uses.
import type { ZtunnelConfig } from '../config/index.ts'

/** Can be posted. No tokens, no addresses of the control plane. */
export type WorkerConfig = Omit<
  ZtunnelConfig,
  'xds' | 'ca' | 'authToken' | 'localContent' | 'proxyMetadata' | 'jsonMetadata' | 'warnings'
>

export function workerConfigOf(config: ZtunnelConfig): WorkerConfig {
  const { xds: _, ca: __, authToken: ___, localContent, proxyMetadata, jsonMetadata, warnings, ...rest } = config
  return rest
}
