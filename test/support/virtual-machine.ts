// A workload outside of the cluster, of the WorkloadGroup `vms/wg`, as the control plane sees one.
import type { ServiceError } from '@grpc/grpc-js'
import { openDeltaStream } from './delta-stream.ts'
import { address } from './xds-observer.ts'

const healthType = 'type.googleapis.com/istio.v1.HealthInformation'

export interface VirtualMachine {
  readonly answered: Promise<void>
  readonly ended: Promise<ServiceError>
  say(healthy: boolean, message?: string): void
  close(): void
}

/** A sidecar on a virtual machine that subscribes to addresses. */
export function openStream(
  port: number,
  { roots, token }: { readonly roots: string; readonly token: string },
): VirtualMachine {
  const stream = openDeltaStream(port, {
    roots,
    headers: { authorization: `Bearer ${token}`, clusterid: 'Kubernetes' },
  })
  const node = {
    id: 'sidecar~10.8.0.1~vm.vms~vms.svc.cluster.local',
    locality: { region: 'eu', zone: 'eu-1' },
    metadata: { AUTO_REGISTER_GROUP: 'wg', NAMESPACE: 'vms', NETWORK: 'vm-net', LABELS: { version: 'v2' } },
  }
  stream.send({ node, typeUrl: address })
  const answered = Promise.withResolvers<void>()
  // What is left unread keeps the end of the stream back.
  const read = async (): Promise<never> => {
    for (;;) {
      await stream.next()
      answered.resolve()
    }
  }
  read().catch(() => {})
  return {
    answered: answered.promise,
    ended: stream.ended,
    say: (isHealthy, message = '') =>
      stream.send({ typeUrl: healthType, ...(isHealthy ? {} : { errorDetail: { code: 500, message } }) }),
    close: () => stream.close(),
  }
}
