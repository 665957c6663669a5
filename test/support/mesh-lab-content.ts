// What the control plane of a test mesh says of its pods and services, in the usual shape.
import { ipToBytes } from '../../src/ztunnel/state/index.ts'
import { ipv6Of, type LabPod, type MeshLab } from './mesh-lab.ts'

export interface LabService {
  readonly name: string
  readonly vips: readonly string[]
  readonly ports: Readonly<Record<number, number>>
}

export const hostnameOf = (service: string): string => `${service}.default.svc.cluster.local`

/** Announces a pod of the mesh, with both its addresses, as member of the services. */
export function announcePod(lab: MeshLab, pod: LabPod, services: readonly LabService[] = []): void {
  lab.controlPlane.setWorkload({
    uid: `c1//Pod/default/${pod.name}`,
    name: pod.name,
    namespace: 'default',
    serviceAccount: pod.name,
    workloadName: pod.name,
    canonicalName: pod.name,
    clusterId: 'c1',
    ...(pod.node === undefined ? {} : { node: pod.node, tunnelProtocol: 1 }),
    addresses: [ipToBytes(pod.ip), ipToBytes(ipv6Of(pod.ip))],
    services: Object.fromEntries(services.map(({ name, ports }) => [`default/${hostnameOf(name)}`, portsOf(ports)])),
  })
}

export function announceService(lab: MeshLab, { name, vips, ports }: LabService): void {
  lab.controlPlane.setService({
    name,
    namespace: 'default',
    hostname: hostnameOf(name),
    addresses: vips.map((ip) => ({ address: ipToBytes(ip) })),
    ...portsOf(ports),
  })
}

function portsOf(ports: LabService['ports']) {
  return {
    ports: Object.entries(ports).map(([servicePort, targetPort]) => ({ servicePort: Number(servicePort), targetPort })),
  }
}

/** Sends a text, ends, and resolves with all that is answered. */
export async function exchange(lab: MeshLab, from: string, to: { ip: string; port: number }, text: string) {
  const socket = await lab.connect(from, to)
  socket.end(text)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
