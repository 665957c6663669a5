// The effective configuration as JSON, for the admin server and the start log. Tokens and header values stay out.
import { formatLogFilter } from '../../observability/index.ts'
import type { ControlPlaneEndpoint, ZtunnelConfig } from './types.ts'

export function dumpConfig(config: ZtunnelConfig): Readonly<Record<string, unknown>> {
  const { authToken, localContent, xds, ca, logFilter, illegalPorts, warnings: _, ...plain } = config
  return {
    ...plain,
    illegalPorts: [...illegalPorts],
    logFilter: formatLogFilter(logFilter),
    ...(xds === undefined ? {} : { xds: dumpEndpoint(xds) }),
    ...(ca === undefined ? {} : { ca: dumpEndpoint(ca) }),
    ...(authToken === undefined ? {} : { authToken: authToken.kind === 'file' ? authToken.path : 'literal' }),
    localConfiguration: localContent !== undefined,
  }
}

function dumpEndpoint(endpoint: ControlPlaneEndpoint): Readonly<Record<string, unknown>> {
  const { roots } = endpoint
  return { ...endpoint, roots: roots.kind === 'file' ? roots.path : roots.kind, headers: Object.keys(endpoint.headers) }
}
