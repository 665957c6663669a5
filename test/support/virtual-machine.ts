// A workload outside of the cluster, of the WorkloadGroup `vms/wg`, as the control plane sees one.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { core, discovery, rpc } from '../../src/proto/index.ts'
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
  const name = 'istiod.istio-system.svc'
  const client = new Client(`127.0.0.1:${port}`, credentials.createSsl(Buffer.from(roots)), {
    'grpc.ssl_target_name_override': name,
    'grpc.default_authority': name,
  })
  const headers = new Metadata()
  headers.set('authorization', `Bearer ${token}`)
  headers.set('clusterid', 'Kubernetes')
  const call = client.makeBidiStreamRequest(
    '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    (request: discovery.DeltaDiscoveryRequest) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    headers,
  )
  const answered = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<ServiceError>()
  call.on('data', () => answered.resolve())
  call.on('error', (error: ServiceError) => ended.resolve(error))
  const send = (init: Parameters<typeof create<typeof discovery.DeltaDiscoveryRequestSchema>>[1]): void => {
    call.write(create(discovery.DeltaDiscoveryRequestSchema, init))
  }
  const node = create(core.NodeSchema, {
    id: 'sidecar~10.8.0.1~vm.vms~vms.svc.cluster.local',
    locality: { region: 'eu', zone: 'eu-1' },
    metadata: { AUTO_REGISTER_GROUP: 'wg', NAMESPACE: 'vms', NETWORK: 'vm-net', LABELS: { version: 'v2' } },
  })
  send({ node, typeUrl: address })
  return {
    answered: answered.promise,
    ended: ended.promise,
    say: (isHealthy, message = '') =>
      send({
        typeUrl: healthType,
        ...(isHealthy ? {} : { errorDetail: create(rpc.StatusSchema, { code: 500, message }) }),
      }),
    close() {
      call.cancel()
      client.close()
    },
  }
}
