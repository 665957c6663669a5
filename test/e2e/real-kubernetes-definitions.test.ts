// What the control plane lives through on Kubernetes: definitions of kinds that go, come and change versions, and writes that are refused.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { isKubeError } from '../../src/kube/index.ts'
import { namespaceNamed } from '../support/cluster-objects.ts'
import { eventually, onceAccepted } from '../support/eventually.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { applyText, type MeshCluster, printed, startMeshCluster } from '../support/mesh-cluster.ts'
import { observeXds } from '../support/xds-observer.ts'

const app = (name: string) => ({ namespace: 'app', name })

const policy = (name: string): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: app(name),
  spec: { action: 'DENY', rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
})

const entry = (name: string, host: string): KubeObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'ServiceEntry',
  metadata: app(name),
  spec: { hosts: [host], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'DNS' },
})

describe('the control plane on Kubernetes follows', { timeout: 240_000, skip: kubeApiServerIsMissing }, () => {
  let cluster: MeshCluster
  before(async () => {
    cluster = await startMeshCluster()
  })
  after(() => cluster?.[Symbol.asyncDispose]())

  test('a kind whose definition is deleted and installed again: its objects go, and new ones come', {
    timeout: 60_000,
  }, async () => {
    const { client } = cluster
    await using discovery = await cluster.startDiscovery()
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await client.create(resources.serviceEntries, entry('a', 'a.example'))
    await proxy.until(() => proxy.held.has('app/a.example'))
    const name = 'serviceentries.networking.istio.io'
    await client.delete(resources.customResourceDefinitions, { name })
    await proxy.until(() => !proxy.held.has('app/a.example'), 45_000)
    await cluster.api.until(resources.customResourceDefinitions, { name }, (found) =>
      found === undefined ? true : undefined,
    )
    await applyText(client, await printed('manifest', 'crds'))
    await onceAccepted(404, () => client.create(resources.serviceEntries, entry('b', 'b.example')))
    await proxy.until(() => proxy.held.has('app/b.example'), 45_000)
    type WithAddresses = KubeObject<unknown, { addresses?: unknown }>
    await cluster.api.until<WithAddresses, unknown>(
      resources.serviceEntries,
      app('b'),
      (found) => found?.status?.addresses,
    )
  })

  test('definitions that serve an older version alone: policies count on, and conditions are written', {
    timeout: 60_000,
  }, async () => {
    const { client } = cluster
    const name = 'authorizationpolicies.security.istio.io'
    await using discovery = await cluster.startDiscovery()
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    const created = await client.create(resources.authorizationPolicies, policy('lasting'))
    await proxy.until(() => proxy.held.has('app/lasting'))
    const { version } = proxy.held.get('app/lasting') ?? {}
    type Crd = KubeObject<{ versions: { name: string; served: boolean }[] }>
    async function serve(...served: readonly string[]): Promise<void> {
      const crd = await client.get<Crd>(resources.customResourceDefinitions, { name })
      assert.ok(crd?.spec)
      const versions = crd.spec.versions.map((one) => ({ ...one, served: served.includes(one.name) }))
      await client.replace(resources.customResourceDefinitions, { ...crd, spec: { ...crd.spec, versions } })
    }
    await serve('v1beta1')
    await discovery.log.until(/serves this kind in another version.*authorizationpolicies/)
    const older = { ...resources.authorizationPolicies, version: 'v1beta1' }
    await client.create(older, { ...policy('older'), apiVersion: 'security.istio.io/v1beta1' })
    await proxy.until(() => proxy.held.has('app/older'))
    await cluster.api.until(
      older,
      app('older'),
      (found) => (found?.status as { conditions?: readonly unknown[] } | undefined)?.conditions?.length,
    )
    assert.equal(proxy.held.get('app/lasting')?.version, version, 'what was there has not been sent again')
    await serve('v1', 'v1beta1')
    await client.delete(older, created.metadata)
    await proxy.until(() => !proxy.held.has('app/lasting'))
  })

  test('a refusal by admission of the cluster: others are written, and this one when it may be', {
    timeout: 60_000,
  }, async () => {
    const { client } = cluster
    const group = 'admissionregistration.k8s.io'
    const kinds = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'] as const
    const [policies, bindings] = kinds.map((kind): Resource => {
      const plural = kind.toLowerCase().replace(/y$/, 'ies').replace(/g$/, 'gs')
      return { group, version: 'v1', kind, plural, namespaced: false }
    }) as [Resource, Resource]
    const metadata = { name: 'no-roots' }
    const apiVersion = `${group}/v1`
    await client.create(policies, {
      apiVersion,
      kind: kinds[0],
      metadata: { ...metadata },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps'] },
          ],
        },
        validations: [{ expression: "request.namespace != 'closed'", message: 'closed is closed' }],
      },
    })
    const binding = { policyName: 'no-roots', validationActions: ['Deny'] }
    await client.create(bindings, { apiVersion, kind: kinds[1], metadata: { ...metadata }, spec: binding })
    await client.create(resources.namespaces, namespaceNamed('closed'))
    let tries = 0
    const isClosed = async (): Promise<boolean> => {
      const metadata = { namespace: 'closed', name: `try-${tries++}` }
      try {
        await client.create(resources.configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata })
        return false
      } catch (error) {
        assert.ok(isKubeError(error, 422), String(error))
        return true
      }
    }
    await eventually(isClosed, 'the policy in force', 30_000)
    await using discovery = await cluster.startDiscovery()
    await client.create(resources.namespaces, namespaceNamed('open'))
    const root = (namespace: string) =>
      cluster.api.until(resources.configMaps, { namespace, name: 'istio-ca-root-cert' }, (found) => found)
    await root('open')
    await discovery.log.until(/a ConfigMap could not be written.*closed is closed/)
    assert.equal(await client.get(resources.configMaps, { namespace: 'closed', name: 'istio-ca-root-cert' }), undefined)
    await client.delete(bindings, metadata)
    await client.delete(policies, metadata)
    await root('closed')
  })
})
