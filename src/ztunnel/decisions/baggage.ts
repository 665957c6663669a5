// The `baggage` header: what one proxy tells the other about the workload behind it.
import type { Workload } from '../model.ts'

export interface Baggage {
  readonly clusterId?: string
  readonly namespace?: string
  readonly workloadName?: string
  readonly workloadType?: string
  readonly serviceName?: string
  readonly revision?: string
  readonly region?: string
  readonly zone?: string
}

/** What baggage says of a workload. */
export type BaggageSource = Pick<
  Workload,
  'clusterId' | 'namespace' | 'workloadType' | 'workloadName' | 'canonicalName' | 'canonicalRevision'
> & { readonly locality?: { readonly region: string; readonly zone: string } }

/** Names in Kubernetes are shorter; a peer must not fill our metrics with anything longer. */
const maxValueLength = 253

const workloadTypes = ['deployment', 'cronjob', 'pod', 'job']

const built = new WeakMap<BaggageSource, string>()

/** The header value of a workload; empty parts are left out. */
export function buildBaggage(workload: BaggageSource): string {
  const known = built.get(workload)
  if (known !== undefined) return known
  const text = baggageText(workload)
  built.set(workload, text)
  return text
}

function baggageText(workload: BaggageSource): string {
  const type = workloadTypes.includes(workload.workloadType) ? workload.workloadType : 'deployment'
  const parts: readonly (readonly [key: string, value: string | undefined])[] = [
    ['k8s.cluster.name', workload.clusterId],
    ['k8s.namespace.name', workload.namespace],
    [`k8s.${type}.name`, workload.workloadName],
    ['service.name', workload.canonicalName],
    ['service.version', workload.canonicalRevision],
    ['cloud.region', workload.locality?.region],
    ['cloud.availability_zone', workload.locality?.zone],
  ]
  return parts
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}

/** Reads the values of all baggage headers; unknown keys and parts without a value are skipped. */
export function parseBaggage(values: readonly string[]): Baggage {
  const found: { -readonly [K in keyof Baggage]: Baggage[K] } = {}
  for (const part of values.flatMap((value) => value.split(','))) {
    const equals = part.indexOf('=')
    if (equals < 0) continue
    const key = part.slice(0, equals).trim()
    const value = part.slice(equals + 1).trim()
    if (value === '' || value.length > maxValueLength) continue
    const type = /^k8s\.(deployment|cronjob|pod|job)\.name$/.exec(key)?.[1]
    if (type !== undefined) {
      found.workloadName = value
      found.workloadType = type
    } else if (key === 'k8s.cluster.name') found.clusterId = value
    else if (key === 'k8s.namespace.name') found.namespace = value
    else if (key === 'service.name') found.serviceName = value
    else if (key === 'service.version') found.revision = value
    else if (key === 'cloud.region') found.region = value
    else if (key === 'cloud.availability_zone') found.zone = value
  }
  return found
}
