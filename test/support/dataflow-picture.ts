// The dataflow of the control plane as its documentation draws it: of a small mesh in which everything there is to read has been read.
import { pictureOf } from '../../src/collections/index.ts'
import { createTestMesh, make } from '../../src/discovery/ambient/testing.ts'

const start = '<!-- dataflow -->'
const end = '<!-- /dataflow -->'

export function dataflowPicture(): string {
  const { graph, inputs, apply } = createTestMesh({ multiNetwork: true, autoAllowWaypoints: true })
  const network = { 'topology.istio.io/network': 'other' }
  inputs.meshConfig.set({})
  inputs.meshNetworks.set({ networks: { other: { endpoints: [{ fromRegistry: 'c2' }], gateways: [] } } })
  inputs.trustDomains.set('c2', 'c2.example')
  apply(
    make.namespace('istio-system', { 'topology.istio.io/network': 'own' }),
    make.namespace('app', { 'istio.io/use-waypoint': 'waypoint', 'istio.io/dataplane-mode': 'ambient' }),
    make.node('node', { 'topology.kubernetes.io/region': 'r' }),
    make.waypoint('app/waypoint'),
    make.service('app/web', '10.9.0.1', { app: 'web' }),
    make.pod('app/web-0', '10.0.0.1', { app: 'web' }),
    make.pod('app/away', '10.0.0.9', { app: 'web', ...network }),
    make.serviceEntry('app/outside', {
      hosts: ['outside.example'],
      endpoints: [{ address: '192.0.2.1' }],
    }),
    make.serviceEntry('app/chosen', { hosts: ['chosen.example'], workloadSelector: { labels: { app: 'web' } } }),
    make.workloadEntry('app/vm', { address: '192.0.2.2', labels: { app: 'web' } }),
    make.policy('app/deny', { selector: { matchLabels: { app: 'web' } }, action: 'DENY', rules: [{}] }),
    make.peer('app/strict', { selector: { matchLabels: { app: 'web' } }, mtls: { mode: 'STRICT' } }),
    make.peer('istio-system/default', { mtls: { mode: 'PERMISSIVE' } }),
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'app', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      ...{
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080 }],
        endpoints: [
          { addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', namespace: 'app', name: 'web-0' } },
          { addresses: ['192.0.2.3'] },
        ],
      },
    },
  )
  inputs.feed('c2', 'services').set(make.service('app/web', '10.9.0.2', { app: 'web' }) as never)
  inputs.feed('c2', 'pods').set(make.pod('app/web-9', '10.2.0.1', { app: 'web', ...network }) as never)
  return pictureOf(graph.describe())
}

/** A page with its picture replaced. */
export function withPicture(page: string, picture: string): string {
  const [before, after] = [page.indexOf(start), page.indexOf(end)]
  if (before === -1 || after === -1) throw new Error(`the page has no ${start} … ${end}`)
  return `${page.slice(0, before + start.length)}\n\n\`\`\`mermaid\n${picture}\n\`\`\`\n\n${page.slice(after)}`
}
