// Istio and Gateway API kinds as the control plane reads them: the fields that have a meaning here.
import type { LabelSelector } from './label-selector.ts'
import type { Condition, KubeObject, ObjectMeta } from './objects.ts'

export interface WorkloadSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
}

export interface PolicyTargetReference {
  readonly group?: string
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

export interface AuthorizationSource {
  readonly principals?: readonly string[]
  readonly notPrincipals?: readonly string[]
  readonly requestPrincipals?: readonly string[]
  readonly notRequestPrincipals?: readonly string[]
  readonly namespaces?: readonly string[]
  readonly notNamespaces?: readonly string[]
  readonly serviceAccounts?: readonly string[]
  readonly notServiceAccounts?: readonly string[]
  readonly ipBlocks?: readonly string[]
  readonly notIpBlocks?: readonly string[]
  readonly remoteIpBlocks?: readonly string[]
  readonly notRemoteIpBlocks?: readonly string[]
  readonly trustDomains?: readonly string[]
  readonly notTrustDomains?: readonly string[]
}

export interface AuthorizationOperation {
  readonly hosts?: readonly string[]
  readonly notHosts?: readonly string[]
  readonly ports?: readonly string[]
  readonly notPorts?: readonly string[]
  readonly methods?: readonly string[]
  readonly notMethods?: readonly string[]
  readonly paths?: readonly string[]
  readonly notPaths?: readonly string[]
}

export interface AuthorizationCondition {
  readonly key: string
  readonly values?: readonly string[]
  readonly notValues?: readonly string[]
}

export interface AuthorizationRule {
  readonly from?: readonly { readonly source?: AuthorizationSource }[]
  readonly to?: readonly { readonly operation?: AuthorizationOperation }[]
  readonly when?: readonly AuthorizationCondition[]
}

export interface AuthorizationPolicySpec {
  readonly selector?: WorkloadSelector
  readonly targetRef?: PolicyTargetReference
  readonly targetRefs?: readonly PolicyTargetReference[]
  readonly rules?: readonly AuthorizationRule[]
  /** ALLOW when absent. */
  readonly action?: 'ALLOW' | 'DENY' | 'AUDIT' | 'CUSTOM'
  readonly provider?: { readonly name?: string }
}

export interface IstioStatus {
  readonly conditions?: readonly Condition[]
  readonly observedGeneration?: number
}

export type AuthorizationPolicy = KubeObject<AuthorizationPolicySpec, IstioStatus>

export type MutualTlsMode = 'UNSET' | 'DISABLE' | 'PERMISSIVE' | 'STRICT'

export interface PeerAuthenticationSpec {
  readonly selector?: WorkloadSelector
  readonly mtls?: { readonly mode?: MutualTlsMode }
  readonly portLevelMtls?: Readonly<Record<string, { readonly mode?: MutualTlsMode }>>
}

export type PeerAuthentication = KubeObject<PeerAuthenticationSpec, IstioStatus>

export interface ServiceEntryPort {
  readonly number: number
  readonly name: string
  readonly protocol?: string
  readonly targetPort?: number
}

/** A WorkloadEntry's spec, and an inline endpoint of a ServiceEntry. */
export interface WorkloadEntrySpec {
  readonly address?: string
  readonly ports?: Readonly<Record<string, number>>
  readonly labels?: Readonly<Record<string, string>>
  readonly network?: string
  readonly locality?: string
  readonly weight?: number
  readonly serviceAccount?: string
}

export interface ServiceEntrySpec {
  readonly hosts?: readonly string[]
  readonly addresses?: readonly string[]
  readonly ports?: readonly ServiceEntryPort[]
  readonly location?: 'MESH_EXTERNAL' | 'MESH_INTERNAL'
  readonly resolution?: 'NONE' | 'STATIC' | 'DNS' | 'DNS_ROUND_ROBIN' | 'DYNAMIC_DNS'
  readonly endpoints?: readonly WorkloadEntrySpec[]
  readonly exportTo?: readonly string[]
  readonly subjectAltNames?: readonly string[]
  readonly workloadSelector?: { readonly labels?: Readonly<Record<string, string>> }
}

export interface ServiceEntryStatus extends IstioStatus {
  readonly addresses?: readonly { readonly host?: string; readonly value: string }[]
}

export type ServiceEntry = KubeObject<ServiceEntrySpec, ServiceEntryStatus>
export type WorkloadEntry = KubeObject<WorkloadEntrySpec, IstioStatus>

export interface GatewayListener {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly hostname?: string
  readonly tls?: { readonly mode?: string }
  readonly allowedRoutes?: {
    readonly namespaces?: {
      readonly from?: string
      readonly selector?: LabelSelector
    }
  }
}

export interface GatewaySpec {
  readonly gatewayClassName: string
  readonly listeners?: readonly GatewayListener[]
}

export interface GatewayStatus {
  readonly addresses?: readonly { readonly type?: string; readonly value: string }[]
  readonly conditions?: readonly Condition[]
}

export type Gateway = KubeObject<GatewaySpec, GatewayStatus>

export interface GatewayClassSpec {
  readonly controllerName: string
}

export type GatewayClass = KubeObject<GatewayClassSpec>

/** `<namespace>/<name>` of an object; the name alone where it has no namespace. */
export function objectName(object: { readonly metadata: ObjectMeta }): string {
  const { namespace, name } = object.metadata
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}
