// Every Istio kind, in the version in which control planes pass it on.
import type { Resource } from './objects.ts'
import { resources } from './resources.ts'

const istio = (
  group: string,
  version: string,
  kind: string,
  plural: string,
  otherVersions?: readonly string[],
): Resource => ({
  group: `${group}.istio.io`,
  version,
  kind,
  plural,
  namespaced: true,
  ...(otherVersions === undefined ? {} : { otherVersions }),
})

export const istioResources = {
  virtualServices: istio('networking', 'v1', 'VirtualService', 'virtualservices', ['v1beta1', 'v1alpha3']),
  destinationRules: istio('networking', 'v1', 'DestinationRule', 'destinationrules', ['v1beta1', 'v1alpha3']),
  /** Not the Gateway of the Gateway API. */
  istioGateways: istio('networking', 'v1', 'Gateway', 'gateways', ['v1beta1', 'v1alpha3']),
  serviceEntries: resources.serviceEntries,
  sidecars: istio('networking', 'v1', 'Sidecar', 'sidecars', ['v1beta1', 'v1alpha3']),
  workloadEntries: resources.workloadEntries,
  workloadGroups: resources.workloadGroups,
  envoyFilters: istio('networking', 'v1alpha3', 'EnvoyFilter', 'envoyfilters'),
  proxyConfigs: istio('networking', 'v1beta1', 'ProxyConfig', 'proxyconfigs'),
  authorizationPolicies: resources.authorizationPolicies,
  peerAuthentications: resources.peerAuthentications,
  requestAuthentications: istio('security', 'v1', 'RequestAuthentication', 'requestauthentications', ['v1beta1']),
  telemetries: istio('telemetry', 'v1', 'Telemetry', 'telemetries', ['v1alpha1']),
  wasmPlugins: istio('extensions', 'v1alpha1', 'WasmPlugin', 'wasmplugins'),
  trafficExtensions: istio('extensions', 'v1alpha1', 'TrafficExtension', 'trafficextensions'),
} as const satisfies Record<string, Resource>
