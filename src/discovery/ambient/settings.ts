// The settings of the ambient index: fixed for the life of the process.

export interface AmbientSettings {
  /** Id of the cluster that holds the mesh's configuration. */
  readonly clusterId: string
  readonly domainSuffix: string
  /** The namespace of the control plane; its network label names the cluster's network. */
  readonly systemNamespace: string
  /** The control plane's revision: mesh objects labelled with another one do not count. Absent: the inputs hold only its own. */
  readonly revision?: string
  /** AMBIENT_ENABLE_MULTI_NETWORK */
  readonly multiNetwork: boolean
  /** AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY */
  readonly dryRunPolicies: boolean
  /** PILOT_AUTO_ALLOW_WAYPOINT_POLICY */
  readonly autoAllowWaypoints: boolean
  /** PILOT_ENABLE_SERVICEENTRY_SELECT_PODS */
  readonly serviceEntriesSelectPods: boolean
  /** PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES */
  readonly servicesSelectWorkloadEntries: boolean
  /** PILOT_ENABLE_IP_AUTOALLOCATE */
  readonly allocateAddresses: boolean
}

export const defaultAmbientSettings: AmbientSettings = {
  clusterId: 'Kubernetes',
  domainSuffix: 'cluster.local',
  systemNamespace: 'istio-system',
  multiNetwork: false,
  dryRunPolicies: false,
  autoAllowWaypoints: false,
  serviceEntriesSelectPods: true,
  servicesSelectWorkloadEntries: true,
  allocateAddresses: true,
}

export const defaultTrustDomain = 'cluster.local'
