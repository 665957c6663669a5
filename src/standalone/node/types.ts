// The Kubernetes types the node works with.
import type {
  ConfigMap as ConfigMapObject,
  Container,
  ContainerStatus,
  NodeSpec,
  NodeStatus,
  PodSpec,
  PodStatus,
  Probe,
  Secret as SecretObject,
  ServiceSpec,
  Volume,
} from 'kubernetes-types/core/v1.js'
import type { Endpoint, EndpointPort } from 'kubernetes-types/discovery/v1.js'
import type { KubeObject } from '../../api/index.ts'

export type { Container, ContainerStatus, Endpoint, EndpointPort, PodSpec, PodStatus, Probe, ServiceSpec, Volume }

export type Pod = KubeObject<PodSpec, PodStatus>
export type Node = KubeObject<NodeSpec, NodeStatus>
export type Service = KubeObject<ServiceSpec>
export type ConfigMap = KubeObject & Pick<ConfigMapObject, 'data' | 'binaryData'>
export type Secret = KubeObject & Pick<SecretObject, 'data' | 'type'>
export type ClusterTrustBundle = KubeObject<{ readonly signerName?: string; readonly trustBundle: string }>
export interface EndpointSlice extends KubeObject {
  addressType?: string
  endpoints?: Endpoint[]
  ports?: EndpointPort[]
}

/** A container of a pod with its part in the pod's life. */
export interface PlannedContainer {
  readonly role: 'init' | 'sidecar' | 'main'
  readonly container: Container
}

/** The pod's containers in the order in which they start. */
export function containersOf(spec: PodSpec): PlannedContainer[] {
  const init = (spec.initContainers ?? []).map(
    (container): PlannedContainer => ({
      role: container.restartPolicy === 'Always' ? 'sidecar' : 'init',
      container,
    }),
  )
  return [...init, ...spec.containers.map((container): PlannedContainer => ({ role: 'main', container }))]
}
