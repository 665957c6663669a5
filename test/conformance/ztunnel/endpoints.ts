// Topic endpoints: pushes as the control plane sends them, encoded, through the delta receiver.
import assert from 'node:assert/strict'
import { create, toBinary } from '@bufbuild/protobuf'
import { workload as proto, security } from '../../../src/proto/index.ts'
import {
  addressTypeUrl,
  authorizationTypeUrl,
  createDeltaReceiver,
  createMeshState,
  ipToBytes,
  type MeshState,
  policyKey,
  serviceKey,
  usableEndpoints,
} from '../../../src/ztunnel/state/index.ts'
import type { Data, TopicRunner } from './topic.ts'

interface Resource {
  readonly typeUrl: string
  readonly name: string
  readonly body: Uint8Array
}

export const runEndpoints: TopicRunner = (one, defaults) => {
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  let rebuilds = 0
  state.subscribe((change) => {
    rebuilds = change.services.filter(({ key }) => key === serviceKey(defaults.service)).length
  })
  for (const push of one.pushes) {
    const resources = resourcesOf(push, defaults.service)
    const rejected: string[] = []
    for (const typeUrl of [addressTypeUrl, authorizationTypeUrl]) {
      const ofType = resources.filter((resource) => resource.typeUrl === typeUrl)
      const removed = typeUrl === addressTypeUrl ? (push.remove ?? []) : []
      if (ofType.length === 0 && removed.length === 0) continue
      const verdict = receive({ typeUrl, resources: ofType.map((one) => ({ ...one, version: '1' })), removed })
      rejected.push(...verdict.rejected.map(({ name }) => name))
    }
    check(state, push.expect, defaults.service, rejected, rebuilds)
  }
}

function check(state: MeshState, expect: Data, defaultService: Data, rejected: string[], rebuilds: number): void {
  const service = state.service(serviceKey(defaultService))
  const endpoints = service === undefined ? null : [...usableEndpoints(state, service)]
  const uids = endpoints?.map((one) => one.workload.uid).sort() ?? null
  if (expect.endpoints !== undefined) assert.deepEqual(uids, expect.endpoints)
  if (expect.endpointCount !== undefined) assert.equal(uids?.length, expect.endpointCount)
  if (expect.staged !== undefined)
    assert.deepEqual(
      [...state.stagedServices()].map(([key]) => key),
      expect.staged,
    )
  if (expect.rejected !== undefined) assert.deepEqual(rejected, expect.rejected)
  if (expect.serviceRebuilds !== undefined) assert.equal(rebuilds, expect.serviceRebuilds)
  for (const [uid, ports] of Object.entries((expect.portMaps ?? {}) as Record<string, object>)) {
    const actual = endpoints?.find((one) => one.workload.uid === uid)?.ports
    assert.deepEqual(Object.fromEntries(actual ?? []), ports)
  }
  for (const [namespace, keys] of Object.entries((expect.namespacePolicies ?? {}) as Record<string, string[]>)) {
    const anyWorkload = { namespace, authorizationPolicies: [] } as Data
    assert.deepEqual(state.policiesFor(anyWorkload, { port: 0 }).policies.map(policyKey), keys)
  }
}

function resourcesOf(push: Data, defaultService: Data): Resource[] {
  if (push.generate === undefined) return (push.update ?? []).map((entry: Data) => resourceOf(entry, defaultService))
  const { workloadsBefore, workloadsAfter } = push.generate
  const member = (index: number): Data => ({
    workload: { uid: `w${index}`, services: { [serviceKey(defaultService)]: {} } },
  })
  const all = Array.from({ length: workloadsBefore + workloadsAfter }, (_, index) => member(index))
  all.splice(workloadsBefore, 0, { service: 'default' })
  return all.map((entry) => resourceOf(entry, defaultService))
}

function resourceOf(entry: Data, defaultService: Data): Resource {
  const address = (name: string, message: proto.Address): Resource => ({
    typeUrl: addressTypeUrl,
    name,
    body: toBinary(proto.AddressSchema, message),
  })
  if (entry.workload !== undefined) {
    const { uid, status, services } = entry.workload
    const value = create(proto.WorkloadSchema, {
      uid,
      namespace: 'ns',
      status: status === 'Unhealthy' ? proto.WorkloadStatus.UNHEALTHY : proto.WorkloadStatus.HEALTHY,
      services: Object.fromEntries(
        Object.entries(services as Data).map(([key, ports]) => [key, { ports: portsOf(ports) }]),
      ),
    })
    return address(uid, create(proto.AddressSchema, { type: { case: 'workload', value } }))
  }
  if (entry.service !== undefined) {
    const service = entry.service === 'default' ? defaultService : { ...defaultService, ...entry.service }
    const value = create(proto.ServiceSchema, {
      name: service.name,
      namespace: service.namespace,
      hostname: service.hostname,
      addresses: service.vips.map((vip: string) => ({ network: '', address: ipToBytes(vip.slice(1)) })),
      ports: portsOf(service.ports),
      ...(service.loadBalancer?.healthPolicy === 'AllowAll'
        ? { loadBalancing: { healthPolicy: proto.LoadBalancing_HealthPolicy.ALLOW_ALL } }
        : {}),
    })
    return address(serviceKey(service), create(proto.AddressSchema, { type: { case: 'service', value } }))
  }
  if (entry.empty !== undefined) return address(entry.empty, create(proto.AddressSchema, {}))
  const { name, namespace, scope } = entry.policy
  const scopes: Data = { Global: 0, Namespace: 1, WorkloadSelector: 2 }
  const policy = create(security.AuthorizationSchema, { name, namespace, scope: scopes[scope], groups: [{}] })
  const body = toBinary(security.AuthorizationSchema, policy)
  return { typeUrl: authorizationTypeUrl, name: policyKey(policy), body }
}

function portsOf(ports: Data): { servicePort: number; targetPort: number }[] {
  return Object.entries(ports).map(([servicePort, targetPort]) => ({
    servicePort: Number(servicePort),
    targetPort: Number(targetPort),
  }))
}
