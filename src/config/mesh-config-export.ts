// Mesh config as the message in which control planes pass it on.
import type { JsonObject } from '@bufbuild/protobuf'
import { meshConfig } from '../proto/control-plane/index.ts'
import type { EncodedResource } from '../xds/index.ts'
import { bodyOf, contentVersion } from './istio-resource.ts'
import type { MeshConfig } from './mesh-config.ts'

export const meshConfigTypeUrl = 'core/v1alpha1/MeshConfig'

/** What holds where nothing is written, beyond what depends on the control plane. */
const builtIn: JsonObject = {
  proxyListenPort: 15001,
  proxyInboundListenPort: 15006,
  connectTimeout: '10s',
  ingressClass: 'istio',
  ingressService: 'istio-ingressgateway',
  ingressControllerMode: 'STRICT',
  enableTracing: true,
  outboundTrafficPolicy: { mode: 'ALLOW_ANY' },
  enableAutoMtls: true,
  defaultServiceExportTo: ['*'],
  defaultVirtualServiceExportTo: ['*'],
  defaultDestinationRuleExportTo: ['*'],
  localityLbSetting: { enabled: true },
  dnsRefreshRate: '60s',
  enablePrometheusMerge: true,
  extensionProviders: [
    { name: 'prometheus', prometheus: {} },
    { name: 'stackdriver', stackdriver: {} },
    { name: 'envoy', envoyFileAccessLog: { path: '/dev/stdout' } },
  ],
}

const builtInProxy: JsonObject = {
  configPath: './etc/istio/proxy',
  binaryPath: '/usr/local/bin/envoy',
  serviceCluster: 'istio-proxy',
  drainDuration: '45s',
  terminationDrainDuration: '5s',
  proxyAdminPort: 15000,
  controlPlaneAuthPolicy: 'MUTUAL_TLS',
  statNameLength: 189,
  statusPort: 15020,
}

/** Everything that is in force: what is written, over what holds where nothing is. */
export function effectiveMeshConfig({ fields, ...config }: MeshConfig): JsonObject {
  const { trustDomain, trustDomainAliases, rootNamespace, discoveryAddress } = config
  const written = fields as JsonObject
  const providers = (list: unknown): JsonObject[] => (Array.isArray(list) ? list : [])
  const byName = new Map(
    [...providers(builtIn.extensionProviders), ...providers(written.extensionProviders)].map((one) => [one.name, one]),
  )
  return {
    ...builtIn,
    ...written,
    trustDomain,
    trustDomainAliases: [...trustDomainAliases],
    rootNamespace,
    extensionProviders: [...byName.values()],
    defaultConfig: { ...builtInProxy, ...(written.defaultConfig as JsonObject | undefined), discoveryAddress },
  }
}

export function encodeMeshConfig(config: MeshConfig): EncodedResource {
  const { typeUrl, value } = bodyOf(meshConfig.MeshConfigSchema, effectiveMeshConfig(config))
  return { name: 'mesh', aliases: [], version: contentVersion(value), body: value, bodyType: typeUrl }
}
