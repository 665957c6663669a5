// The definitions of the Gateway API kinds.
import { ageColumn, type CrdPlan, type CrdVersionPlan, column, crd } from './crd-builder.ts'
import type { CustomResourceDefinition } from './custom-kinds.ts'
import { grpcRouteSpec, httpRouteSpec, routeStatus, tcpRouteSpec, tlsRouteSpec } from './gateway-route-schemas.ts'
import {
  backendSpec,
  backendTlsPolicySpec,
  backendTrafficPolicySpec,
  gatewayClassSpec,
  gatewayClassStatus,
  gatewayGroup,
  gatewaySpec,
  gatewayStatus,
  listenerSetSpec,
  listenerSetStatus,
  policyStatus,
  referenceGrantSpec,
} from './gateway-schemas.ts'
import type { Schema } from './kind.ts'
import { anyObject } from './schema.ts'

const experimentalGroup = 'gateway.networking.x-k8s.io'
const routeColumns = [column('Hostnames', '.spec.hostnames'), ageColumn]

interface Row {
  readonly kind: string
  readonly plural: string
  readonly short?: readonly string[]
  readonly group?: string
  readonly scope?: CrdPlan['scope']
  readonly spec: Schema
  readonly status?: Schema
  readonly versions: readonly string[]
  readonly storage?: string
  readonly columns?: CrdVersionPlan['columns']
}

const rows: readonly Row[] = [
  {
    kind: 'GatewayClass',
    plural: 'gatewayclasses',
    short: ['gc'],
    scope: 'Cluster',
    spec: gatewayClassSpec,
    status: gatewayClassStatus,
    versions: ['v1', 'v1beta1'],
    columns: [
      column('Controller', '.spec.controllerName'),
      column('Accepted', '.status.conditions[?(@.type=="Accepted")].status'),
      ageColumn,
    ],
  },
  {
    kind: 'Gateway',
    plural: 'gateways',
    short: ['gtw'],
    spec: gatewaySpec,
    status: gatewayStatus,
    versions: ['v1', 'v1beta1'],
    columns: [
      column('Class', '.spec.gatewayClassName'),
      column('Address', '.status.addresses[*].value'),
      column('Programmed', '.status.conditions[?(@.type=="Programmed")].status'),
      ageColumn,
    ],
  },
  {
    kind: 'HTTPRoute',
    plural: 'httproutes',
    spec: httpRouteSpec,
    status: routeStatus,
    versions: ['v1', 'v1beta1'],
    columns: routeColumns,
  },
  {
    kind: 'GRPCRoute',
    plural: 'grpcroutes',
    spec: grpcRouteSpec,
    status: routeStatus,
    versions: ['v1'],
    columns: routeColumns,
  },
  {
    kind: 'TLSRoute',
    plural: 'tlsroutes',
    spec: tlsRouteSpec,
    status: routeStatus,
    versions: ['v1', 'v1alpha3', 'v1alpha2'],
    columns: [ageColumn],
  },
  {
    kind: 'TCPRoute',
    plural: 'tcproutes',
    spec: tcpRouteSpec,
    status: routeStatus,
    versions: ['v1', 'v1alpha2'],
    columns: [ageColumn],
  },
  {
    kind: 'UDPRoute',
    plural: 'udproutes',
    spec: tcpRouteSpec,
    status: routeStatus,
    versions: ['v1alpha2'],
    columns: [ageColumn],
  },
  {
    kind: 'ReferenceGrant',
    plural: 'referencegrants',
    short: ['refgrant'],
    spec: referenceGrantSpec,
    versions: ['v1', 'v1beta1', 'v1alpha2'],
    storage: 'v1beta1',
    columns: [ageColumn],
  },
  {
    kind: 'BackendTLSPolicy',
    plural: 'backendtlspolicies',
    short: ['btlspolicy'],
    spec: backendTlsPolicySpec,
    status: policyStatus,
    versions: ['v1', 'v1alpha3'],
    columns: [ageColumn],
  },
  {
    kind: 'ListenerSet',
    plural: 'listenersets',
    short: ['lset'],
    spec: listenerSetSpec,
    status: listenerSetStatus,
    versions: ['v1'],
    columns: [
      column('Accepted', '.status.conditions[?(@.type=="Accepted")].status'),
      column('Programmed', '.status.conditions[?(@.type=="Programmed")].status'),
      ageColumn,
    ],
  },
  {
    kind: 'XBackendTrafficPolicy',
    plural: 'xbackendtrafficpolicies',
    short: ['xbtrafficpolicy'],
    group: experimentalGroup,
    spec: backendTrafficPolicySpec,
    status: policyStatus,
    versions: ['v1alpha1'],
    columns: [ageColumn],
  },
  {
    kind: 'XBackend',
    plural: 'xbackends',
    group: experimentalGroup,
    spec: backendSpec,
    status: anyObject(),
    versions: ['v1alpha1'],
    columns: [ageColumn],
  },
]

export const gatewayCrds: readonly CustomResourceDefinition[] = rows.map((row) =>
  crd({
    group: row.group ?? gatewayGroup,
    kind: row.kind,
    plural: row.plural,
    ...(row.short === undefined ? {} : { shortNames: row.short }),
    categories: ['gateway-api'],
    ...(row.scope === undefined ? {} : { scope: row.scope }),
    annotations: {
      'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api',
      'gateway.networking.k8s.io/bundle-version': 'v1.6.0',
      'gateway.networking.k8s.io/channel': row.group === undefined ? 'standard' : 'experimental',
    },
    storage: row.storage ?? row.versions[0] ?? '',
    versions: row.versions.map(
      (name): CrdVersionPlan => ({
        name,
        spec: row.spec,
        required: row.kind === 'ReferenceGrant' ? [] : ['spec'],
        ...(row.status === undefined ? { hasStatus: false } : { status: row.status }),
        ...(row.columns === undefined ? {} : { columns: row.columns }),
      }),
    ),
  }),
)
