// Cluster DNS.
import { clusterRole, type KubeObject, serviceAccount } from '../../api/index.ts'
import type { SystemSettings } from './manifests.ts'
import { object, read, tolerations } from './objects.ts'

const namespace = 'kube-system'
const labels = { 'k8s-app': 'kube-dns' }
const account = { name: 'cluster-dns', namespace }

export function clusterDns({ lateen, dnsIP, domain }: SystemSettings): KubeObject[] {
  const container = {
    name: 'dns',
    image: 'host',
    command: [...lateen, 'dns', '--listen', '0.0.0.0:53', '--cluster-domain', domain],
    ports: [
      { name: 'dns', containerPort: 53, protocol: 'UDP' },
      { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
      { name: 'health', containerPort: 8080 },
    ],
    readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 5 },
    livenessProbe: {
      httpGet: { path: '/health', port: 8080 },
      periodSeconds: 10,
      failureThreshold: 5,
      timeoutSeconds: 5,
    },
    securityContext: { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'DAC_OVERRIDE'] } },
  }
  return [
    serviceAccount(account),
    ...clusterRole(`${account.name}-${namespace}`, account, [
      { apiGroups: [''], resources: ['services', 'namespaces'], verbs: read },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
    ]),
    object(
      'v1',
      'Service',
      { name: 'kube-dns', namespace, labels: { ...labels, 'kubernetes.io/name': 'CoreDNS' } },
      {
        spec: {
          clusterIP: dnsIP,
          selector: labels,
          ports: [
            { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
            { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 53 },
          ],
        },
      },
    ),
    object(
      'apps/v1',
      'Deployment',
      { name: 'cluster-dns', namespace, labels },
      {
        spec: {
          replicas: 1,
          selector: { matchLabels: labels },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
          template: {
            metadata: { labels },
            spec: {
              serviceAccountName: 'cluster-dns',
              priorityClassName: 'system-cluster-critical',
              dnsPolicy: 'Default',
              tolerations,
              terminationGracePeriodSeconds: 5,
              containers: [container],
            },
          },
        },
      },
    ),
  ]
}
