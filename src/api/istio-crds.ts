// The definitions of every Istio kind.
import { ageColumn, type CrdVersionPlan, column, crd } from './crd-builder.ts'
import type { CustomResourceDefinition } from './custom-kinds.ts'
import {
  envoyFilter,
  gateway,
  proxyConfig,
  serviceEntry,
  sidecar,
  workloadEntry,
  workloadGroup,
} from './istio-network-schemas.ts'
import {
  authorizationPolicy,
  peerAuthentication,
  requestAuthentication,
  telemetry,
  trafficExtension,
  wasmPlugin,
} from './istio-policy-schemas.ts'
import { status } from './istio-schemas.ts'
import { destinationRule, virtualService } from './istio-traffic-schemas.ts'
import type { PrinterColumn, Schema } from './kind.ts'

interface Row {
  readonly group: string
  readonly kind: string
  readonly plural: string
  readonly short?: string
  readonly spec: Schema
  readonly versions: readonly string[]
  readonly storage?: string
  readonly columns?: readonly PrinterColumn[]
  readonly specRequired?: true
}

const traffic = ['v1', 'v1beta1', 'v1alpha3']
const security = ['v1', 'v1beta1']

const rows: readonly Row[] = [
  {
    group: 'networking.istio.io',
    kind: 'VirtualService',
    plural: 'virtualservices',
    short: 'vs',
    spec: virtualService,
    versions: traffic,
    columns: [
      column('Gateways', '.spec.gateways', 'The names of gateways and sidecars that should apply these routes'),
      column('Hosts', '.spec.hosts', 'The destination hosts to which traffic is being sent'),
      ageColumn,
    ],
  },
  {
    group: 'networking.istio.io',
    kind: 'DestinationRule',
    plural: 'destinationrules',
    short: 'dr',
    spec: destinationRule,
    versions: traffic,
    columns: [column('Host', '.spec.host', 'The name of a service from the service registry'), ageColumn],
  },
  { group: 'networking.istio.io', kind: 'Gateway', plural: 'gateways', short: 'gw', spec: gateway, versions: traffic },
  {
    group: 'networking.istio.io',
    kind: 'ServiceEntry',
    plural: 'serviceentries',
    short: 'se',
    spec: serviceEntry,
    versions: traffic,
    specRequired: true,
    columns: [
      column('Hosts', '.spec.hosts', 'The hosts associated with the ServiceEntry'),
      column('Location', '.spec.location', 'Whether the service is external to the mesh or part of it'),
      column('Resolution', '.spec.resolution', 'Service resolution mode for the hosts'),
      ageColumn,
    ],
  },
  { group: 'networking.istio.io', kind: 'Sidecar', plural: 'sidecars', spec: sidecar, versions: traffic },
  {
    group: 'networking.istio.io',
    kind: 'WorkloadEntry',
    plural: 'workloadentries',
    short: 'we',
    spec: workloadEntry,
    versions: traffic,
    specRequired: true,
    columns: [ageColumn, column('Address', '.spec.address', 'Address associated with the network endpoint.')],
  },
  {
    group: 'networking.istio.io',
    kind: 'WorkloadGroup',
    plural: 'workloadgroups',
    short: 'wg',
    spec: workloadGroup,
    versions: traffic,
    specRequired: true,
    columns: [ageColumn],
  },
  {
    group: 'networking.istio.io',
    kind: 'EnvoyFilter',
    plural: 'envoyfilters',
    spec: envoyFilter,
    versions: ['v1alpha3'],
  },
  {
    group: 'networking.istio.io',
    kind: 'ProxyConfig',
    plural: 'proxyconfigs',
    spec: proxyConfig,
    versions: ['v1beta1'],
  },
  {
    group: 'security.istio.io',
    kind: 'AuthorizationPolicy',
    plural: 'authorizationpolicies',
    short: 'ap',
    spec: authorizationPolicy,
    versions: security,
    columns: [column('Action', '.spec.action', 'The operation to take.'), ageColumn],
  },
  {
    group: 'security.istio.io',
    kind: 'PeerAuthentication',
    plural: 'peerauthentications',
    short: 'pa',
    spec: peerAuthentication,
    versions: security,
    columns: [column('Mode', '.spec.mtls.mode', 'Defines the mTLS mode used for peer authentication.'), ageColumn],
  },
  {
    group: 'security.istio.io',
    kind: 'RequestAuthentication',
    plural: 'requestauthentications',
    short: 'ra',
    spec: requestAuthentication,
    versions: security,
  },
  {
    group: 'telemetry.istio.io',
    kind: 'Telemetry',
    plural: 'telemetries',
    short: 'telemetry',
    spec: telemetry,
    versions: ['v1', 'v1alpha1'],
    storage: 'v1alpha1',
    columns: [ageColumn],
  },
  {
    group: 'extensions.istio.io',
    kind: 'WasmPlugin',
    plural: 'wasmplugins',
    spec: wasmPlugin,
    versions: ['v1alpha1'],
    specRequired: true,
    columns: [ageColumn],
  },
  {
    group: 'extensions.istio.io',
    kind: 'TrafficExtension',
    plural: 'trafficextensions',
    spec: trafficExtension,
    versions: ['v1alpha1'],
    specRequired: true,
    columns: [ageColumn],
  },
]

const familyLabels: Readonly<Record<string, string>> = { security: 'security', telemetry: 'telemetry' }

export const istioCrds: readonly CustomResourceDefinition[] = rows.map((row) => {
  const family = row.group.split('.')[0] ?? ''
  const label = familyLabels[family]
  return crd({
    group: row.group,
    kind: row.kind,
    plural: row.plural,
    ...(row.short === undefined ? {} : { shortNames: [row.short] }),
    categories: ['istio-io', `${family}-istio-io`],
    labels: {
      app: 'istio-pilot',
      chart: 'istio',
      heritage: 'Tiller',
      release: 'istio',
      ...(label === undefined ? {} : { istio: label }),
    },
    annotations: { 'helm.sh/resource-policy': 'keep' },
    storage: row.storage ?? row.versions[0] ?? '',
    versions: row.versions.map(
      (name): CrdVersionPlan => ({
        name,
        spec: row.spec,
        status,
        ...(row.specRequired === true ? { required: ['spec'] } : {}),
        ...(row.columns === undefined ? {} : { columns: row.columns }),
      }),
    ),
  })
})
