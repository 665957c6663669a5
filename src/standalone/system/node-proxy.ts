// The node proxy (ztunnel), on every node, as Istio's chart sets it up.
import { type KubeObject, nodeProxyRights } from '../../api/index.ts'
import { istioToken } from './control-plane.ts'
import type { SystemSettings } from './manifests.ts'
import { fromField, object, tolerations } from './objects.ts'

const name = 'ztunnel'
const namespace = 'istio-system'
const graceSeconds = 30

export function nodeProxy({ lateen, runDirectory, domain, trustBundle }: SystemSettings): KubeObject[] {
  const address = `istiod.${namespace}.svc:15012`
  const env = [
    fromField('NODE_NAME', 'spec.nodeName'),
    fromField('POD_NAME', 'metadata.name'),
    fromField('POD_NAMESPACE', 'metadata.namespace'),
    fromField('INSTANCE_IP', 'status.podIP'),
    fromField('SERVICE_ACCOUNT', 'spec.serviceAccountName'),
    { name: 'CA_ADDRESS', value: address },
    { name: 'XDS_ADDRESS', value: address },
    { name: 'LOG_FORMAT', value: 'plain' },
    { name: 'RUST_LOG', value: 'info' },
    { name: 'ISTIO_META_CLUSTER_ID', value: 'Kubernetes' },
    { name: 'CLUSTER_DOMAIN', value: domain },
    { name: 'TRUST_DOMAIN', value: domain },
    { name: 'INPOD_ENABLED', value: 'true' },
    { name: 'INPOD_UDS', value: `${runDirectory}/$(NODE_NAME)/ztunnel.sock` },
    { name: 'TERMINATION_GRACE_PERIOD_SECONDS', value: String(graceSeconds) },
    // All nodes share one machine, with the applications and the control plane.
    { name: 'ZTUNNEL_WORKER_THREADS', value: '25%' },
  ]
  return [
    ...nodeProxyRights(namespace),
    object(
      'apps/v1',
      'DaemonSet',
      { name, namespace, labels: { app: name } },
      {
        spec: {
          selector: { matchLabels: { app: name } },
          // On the node's network the new one cannot start beside the old one.
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
          template: {
            metadata: {
              labels: { app: name, 'sidecar.istio.io/inject': 'false', 'istio.io/dataplane-mode': 'none' },
            },
            spec: {
              serviceAccountName: name,
              hostNetwork: true,
              dnsPolicy: 'ClusterFirstWithHostNet',
              priorityClassName: 'system-node-critical',
              tolerations,
              terminationGracePeriodSeconds: graceSeconds,
              containers: [
                {
                  name: 'istio-proxy',
                  image: 'host',
                  command: [...lateen, 'ztunnel'],
                  args: ['proxy', 'ztunnel'],
                  env,
                  ports: [{ name: 'ztunnel-stats', containerPort: 15020 }],
                  readinessProbe: { httpGet: { path: '/healthz/ready', port: 15021 }, periodSeconds: 5 },
                  securityContext: {
                    runAsUser: 0,
                    runAsGroup: 1337,
                    allowPrivilegeEscalation: true,
                    capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'SYS_ADMIN', 'NET_RAW', 'DAC_OVERRIDE'] },
                  },
                  volumeMounts: [
                    { name: 'istiod-ca-cert', mountPath: '/var/run/secrets/istio', readOnly: true },
                    { name: 'istio-token', mountPath: '/var/run/secrets/tokens', readOnly: true },
                  ],
                },
              ],
              volumes: [istioToken, { name: 'istiod-ca-cert', ...roots(trustBundle) }],
            },
          },
        },
      },
    ),
  ]
}

/** What the control plane hands out its roots in. */
function roots(trustBundle: boolean) {
  if (!trustBundle) return { configMap: { name: 'istio-ca-root-cert' } }
  const clusterTrustBundle = { name: 'istio.io:istiod-ca:root-cert', path: 'root-cert.pem' }
  return { projected: { sources: [{ clusterTrustBundle }] } }
}
