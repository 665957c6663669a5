// The node agent: enrols pods and keeps the CNI plugin installed, on every node.
import { type KubeObject, nodeAgentRights } from '../../api/index.ts'
import type { SystemSettings } from './manifests.ts'
import { fromField, object, tolerations } from './objects.ts'

const name = 'istio-cni-node'
const namespace = 'istio-system'
const labels = { 'k8s-app': name }

export function nodeAgent({ lateen, nodesDirectory, runDirectory }: SystemSettings): KubeObject[] {
  const node = `${nodesDirectory}/$(NODE_NAME)`
  const sockets = `${runDirectory}/$(NODE_NAME)`
  const env = [
    fromField('NODE_NAME', 'spec.nodeName'),
    fromField('KUBERNETES_NODE', 'spec.nodeName'),
    fromField('POD_NAME', 'metadata.name'),
    fromField('POD_NAMESPACE', 'metadata.namespace'),
    { name: 'SYSTEM_NAMESPACE', value: namespace },
    // The agent sees the host's own files: every path is the node's path.
    { name: 'MOUNTED_CNI_NET_DIR', value: `${node}/cni/net.d` },
    { name: 'MOUNTED_CNI_BIN_DIR', value: `${node}/cni/bin` },
    { name: 'CNI_AGENT_RUN_DIR', value: `${sockets}/istio-cni` },
    { name: 'ZTUNNEL_UDS_ADDRESS', value: `${sockets}/ztunnel.sock` },
    { name: 'POD_NETNS_DIR', value: '/run/netns' },
    { name: 'HOST_PREFIX', value: '' },
    { name: 'CHAINED_CNI_PLUGIN', value: 'true' },
    { name: 'AMBIENT_ENABLED', value: 'true' },
    { name: 'AMBIENT_DNS_CAPTURE', value: 'true' },
    { name: 'AMBIENT_IPV6', value: 'true' },
    { name: 'AMBIENT_RECONCILE_POD_RULES_ON_STARTUP', value: 'true' },
    // A pod whose membership is unknown must not start outside the mesh.
    { name: 'ENABLE_AMBIENT_DETECTION_RETRY', value: 'true' },
    { name: 'EXCLUDE_NAMESPACES', value: 'kube-system' },
    { name: 'LOG_LEVEL', value: 'info' },
    // The control plane on the same network has 15014.
    { name: 'MONITORING_PORT', value: '15024' },
  ]
  return [
    ...nodeAgentRights(namespace),
    object(
      'apps/v1',
      'DaemonSet',
      { name, namespace, labels },
      {
        spec: {
          selector: { matchLabels: labels },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
          template: {
            metadata: {
              labels: { ...labels, 'sidecar.istio.io/inject': 'false', 'istio.io/dataplane-mode': 'none' },
            },
            spec: {
              serviceAccountName: 'istio-cni',
              hostNetwork: true,
              dnsPolicy: 'ClusterFirstWithHostNet',
              priorityClassName: 'system-node-critical',
              tolerations,
              terminationGracePeriodSeconds: 30,
              containers: [
                {
                  name: 'install-cni',
                  image: 'host',
                  command: [...lateen, 'cni-agent'],
                  env,
                  readinessProbe: { httpGet: { path: '/readyz', port: 8000 }, periodSeconds: 5, timeoutSeconds: 5 },
                  livenessProbe: {
                    httpGet: { path: '/healthz', port: 8000 },
                    initialDelaySeconds: 5,
                    periodSeconds: 10,
                    timeoutSeconds: 5,
                  },
                  securityContext: {
                    runAsUser: 0,
                    runAsGroup: 0,
                    capabilities: {
                      drop: ['ALL'],
                      add: ['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN', 'SYS_PTRACE', 'DAC_OVERRIDE'],
                    },
                  },
                },
              ],
            },
          },
        },
      },
    ),
  ]
}
