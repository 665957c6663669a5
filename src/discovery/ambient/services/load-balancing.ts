// How clients choose among the endpoints of a service.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { workload } from '../../../proto/index.ts'

export type LoadBalancingInit = MessageInitShape<typeof workload.LoadBalancingSchema>

const { LoadBalancing_Scope: Scope, LoadBalancing_Mode: Mode, LoadBalancing_HealthPolicy: HealthPolicy } = workload

export const trafficDistributionAnnotation = 'networking.istio.io/traffic-distribution'

/** For services whose clients choose the address themselves. */
export function passThrough(): LoadBalancingInit {
  return { mode: Mode.PASSTHROUGH, healthPolicy: HealthPolicy.ALLOW_ALL }
}

export function loadBalancingOf(sources: {
  readonly internalTrafficPolicy?: string | undefined
  readonly trafficDistribution?: string | undefined
  readonly annotation?: string | undefined
  readonly namespaceAnnotation: () => string | undefined
  readonly publishNotReadyAddresses?: boolean | undefined
}): LoadBalancingInit | undefined {
  const chosen = choose(sources)
  if (sources.publishNotReadyAddresses !== true) return chosen
  return { ...chosen, healthPolicy: HealthPolicy.ALLOW_ALL }
}

function choose(sources: Parameters<typeof loadBalancingOf>[0]): LoadBalancingInit | undefined {
  if (sources.internalTrafficPolicy === 'Local') return { mode: Mode.STRICT, routingPreference: [Scope.NODE] }
  const bySpec = distribution(sources.trafficDistribution)
  if (bySpec !== undefined) return bySpec
  if (sources.annotation !== undefined && sources.annotation !== '') return distribution(sources.annotation)
  return distribution(sources.namespaceAnnotation())
}

function distribution(word: string | undefined): LoadBalancingInit | undefined {
  const zonal = [Scope.NETWORK, Scope.REGION, Scope.ZONE]
  switch (word?.toLowerCase()) {
    case 'preferclose':
    case 'prefersamezone':
      return { mode: Mode.FAILOVER, routingPreference: zonal }
    case 'prefersamenode':
      return { mode: Mode.FAILOVER, routingPreference: [...zonal, Scope.SUBZONE, Scope.NODE] }
    default:
      return undefined
  }
}
