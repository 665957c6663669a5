// The control plane, with the names, ports and rights that Istio's charts give it.
import { controlPlaneRights, type KubeObject } from '../../api/index.ts'
import type { SystemSettings } from './manifests.ts'
import { fromField, object, tolerations } from './objects.ts'

const namespace = 'istio-system'
const labels = { app: 'istiod', istio: 'pilot', 'istio.io/rev': 'default' }

export function controlPlane({ lateen, domain, trustBundle }: SystemSettings): KubeObject[] {
  const mesh = `defaultConfig:\n  discoveryAddress: istiod.${namespace}.svc:15012\nrootNamespace: ${namespace}\ntrustDomain: ${domain}\n`
  return [
    ...controlPlaneRights({ namespace, trustBundles: trustBundle }),
    object(
      'v1',
      'ConfigMap',
      { name: 'istio', namespace, labels: { 'istio.io/rev': 'default' } },
      {
        data: { mesh, meshNetworks: 'networks: {}\n' },
      },
    ),
    object(
      'v1',
      'Service',
      { name: 'istiod', namespace, labels },
      {
        spec: {
          selector: { app: 'istiod', istio: 'pilot' },
          ports: [
            { name: 'grpc-xds', port: 15010, targetPort: 15010 },
            { name: 'https-dns', port: 15012, targetPort: 15012 },
            { name: 'https-webhook', port: 443, targetPort: 15017 },
            { name: 'http-monitoring', port: 15014, targetPort: 15014 },
          ],
        },
      },
    ),
    object(
      'apps/v1',
      'Deployment',
      { name: 'istiod', namespace, labels },
      {
        spec: {
          replicas: 1,
          selector: { matchLabels: { app: 'istiod', istio: 'pilot' } },
          // On the node's network: the ports are taken until the old one is gone.
          strategy: { type: 'Recreate' },
          template: {
            metadata: {
              labels: { ...labels, 'sidecar.istio.io/inject': 'false', 'istio.io/dataplane-mode': 'none' },
            },
            spec: {
              serviceAccountName: 'istiod',
              hostNetwork: true,
              dnsPolicy: 'ClusterFirstWithHostNet',
              tolerations,
              terminationGracePeriodSeconds: 10,
              containers: [
                {
                  name: 'discovery',
                  image: 'host',
                  command: [...lateen, 'discovery'],
                  ports: [8080, 15010, 15012, 15014, 15017].map((containerPort) => ({ containerPort })),
                  readinessProbe: {
                    httpGet: { path: '/ready', port: 8080 },
                    initialDelaySeconds: 1,
                    periodSeconds: 3,
                    timeoutSeconds: 5,
                  },
                  env: [
                    { name: 'REVISION', value: 'default' },
                    { name: 'PILOT_CERT_PROVIDER', value: 'istiod' },
                    fromField('POD_NAME', 'metadata.name'),
                    fromField('POD_NAMESPACE', 'metadata.namespace'),
                    fromField('SERVICE_ACCOUNT', 'spec.serviceAccountName'),
                    fromField('NODE_NAME', 'spec.nodeName'),
                    { name: 'PILOT_ENABLE_AMBIENT', value: 'true' },
                    { name: 'CA_TRUSTED_NODE_ACCOUNTS', value: `${namespace}/ztunnel` },
                    { name: 'CLUSTER_ID', value: 'Kubernetes' },
                    ...(trustBundle ? [{ name: 'ENABLE_CLUSTER_TRUST_BUNDLE_API', value: 'true' }] : []),
                  ],
                  securityContext: { allowPrivilegeEscalation: false },
                  volumeMounts: [
                    { name: 'istio-token', mountPath: '/var/run/secrets/tokens', readOnly: true },
                    { name: 'config-volume', mountPath: '/etc/istio/config', readOnly: true },
                  ],
                },
              ],
              volumes: [istioToken, { name: 'config-volume', configMap: { name: 'istio' } }],
            },
          },
        },
      },
    ),
  ]
}

/** The token by which a part of the mesh proves its service account to the control plane. */
export const istioToken = {
  name: 'istio-token',
  projected: {
    sources: [{ serviceAccountToken: { audience: 'istio-ca', expirationSeconds: 43_200, path: 'istio-token' } }],
  },
}
