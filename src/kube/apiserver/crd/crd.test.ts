import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startTestApi } from '../../../../test/support/embedded-api.ts'
import { type CustomResourceDefinition, type KubeObject, type Resource, resources } from '../../../api/index.ts'

const api = await startTestApi()
const { client } = api
after(() => api[Symbol.asyncDispose]())

const spec = {
  type: 'object',
  required: ['size'],
  properties: {
    size: { type: 'integer', minimum: 1 },
    color: { type: 'string', default: 'red', enum: ['red', 'blue'] },
    port: { 'x-kubernetes-int-or-string': true },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, value: { type: 'string' } },
      },
    },
    replicas: { type: 'integer' },
  },
}
const status = { type: 'object', properties: { replicas: { type: 'integer' }, selector: { type: 'string' } } }
const version = (name: string, storage: boolean) => ({
  name,
  storage,
  served: true,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
  subresources: {
    status: {},
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
})
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.test' },
  spec: {
    group: 'shop.test',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', shortNames: ['wd'] },
    versions: [version('v1', true), version('v1beta1', false)],
  },
}
const widgets: Resource = { group: 'shop.test', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }
const older: Resource = { ...widgets, version: 'v1beta1' }
const widget = (name: string, fields: object): KubeObject => ({
  apiVersion: 'shop.test/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default' },
  spec: fields,
})

test('a definition is established and its kind is served in every version', async () => {
  await client.create(resources.customResourceDefinitions, definition as unknown as KubeObject)
  const crd = await api.until(
    resources.customResourceDefinitions,
    { name: 'widgets.shop.test' },
    (object: CustomResourceDefinition | undefined) =>
      object?.status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')
        ? object
        : undefined,
  )
  assert.deepEqual(crd.status?.storedVersions, ['v1'])
  assert.equal(crd.status?.acceptedNames?.listKind, 'WidgetList')
  const created = await client.create(widgets, widget('a', { size: 1 }))
  assert.deepEqual(created.spec, { size: 1, color: 'red' })
  const seen = await client.get(older, { namespace: 'default', name: 'a' })
  assert.equal(seen?.apiVersion, 'shop.test/v1beta1')
})

const refusals: readonly (readonly [object, RegExp])[] = [
  [{}, /Widget\.shop\.test "x" is invalid: spec\.size: Required value/],
  [{ size: 0 }, /spec\.size: Invalid value: 0: spec\.size in body should be greater than or equal to 1/],
  [{ size: 'big' }, /spec\.size: Invalid value: "?big"?: spec\.size in body must be of type integer: "string"/],
  [{ size: 1, color: 'green' }, /spec\.color: Unsupported value: "green": supported values: "red", "blue"/],
  [{ size: 1, port: true }, /spec\.port: .*must be of type integer or string: "boolean"/],
  [{ size: 1, items: [{ name: 'a' }, { name: 'a' }] }, /spec\.items\[1\]: Duplicate value: \{"name":"a"\}/],
]
for (const [fields, wanted] of refusals) {
  test(`a widget with ${JSON.stringify(fields)} is refused`, async () => {
    await assert.rejects(client.create(widgets, widget('x', fields)), wanted)
  })
}

test('unknown fields are dropped, or refused when the client asks for it', async () => {
  const created = await client.create(
    widgets,
    widget('b', { size: 2, extra: 1, port: 'http', free: { any: { thing: 1 } } }),
  )
  assert.deepEqual(created.spec, { size: 2, port: 'http', free: { any: { thing: 1 } }, color: 'red' })
  const response = await client.request('/apis/shop.test/v1/namespaces/default/widgets?fieldValidation=Strict', {
    method: 'POST',
    body: widget('c', { size: 2, extra: 1 }),
    headers: { 'content-type': 'application/json' },
  })
  assert.equal(response.status, 400)
  assert.match(await response.text(), /unknown field \\"spec\.extra\\"/)
})

test('status and scale are subresources', async () => {
  const object = await client.get<KubeObject<{ size: number; replicas?: number }>>(widgets, {
    namespace: 'default',
    name: 'b',
  })
  assert.ok(object)
  await client.replace(
    widgets,
    { ...object, spec: { size: 9 }, status: { replicas: 3, selector: 'a=b' } },
    { subresource: 'status' },
  )
  const after = await client.get<KubeObject<{ size: number }, { replicas: number }>>(widgets, {
    namespace: 'default',
    name: 'b',
  })
  assert.equal(after?.spec?.size, 2)
  assert.equal(after?.status?.replicas, 3)
  await client.patch(
    widgets,
    { namespace: 'default', name: 'b' },
    { kind: 'merge', body: { spec: { replicas: 5 } } },
    { subresource: 'scale' },
  )
  const scaled = await client.get<KubeObject<{ replicas?: number }, { selector?: string }>>(
    widgets,
    { namespace: 'default', name: 'b' },
    'scale',
  )
  assert.equal(scaled?.spec?.replicas, 5)
  assert.equal(scaled?.status?.selector, 'a=b')
})

test('a definition that is not structural is refused with the field', async () => {
  const broken = structuredClone(definition)
  broken.metadata.name = 'gadgets.shop.test'
  broken.spec.names = { kind: 'Gadget', plural: 'gadgets', shortNames: [] }
  const [first] = broken.spec.versions
  Object.assign(first?.schema.openAPIV3Schema.properties.spec.properties ?? {}, { untyped: { description: 'no type' } })
  await assert.rejects(
    client.create(resources.customResourceDefinitions, broken as unknown as KubeObject),
    /spec\.versions\[0\]\.schema\.openAPIV3Schema\.properties\[spec\]\.properties\[untyped\]\.type: Required value/,
  )
})

test('deleting a definition deletes its objects and ends its kind', async () => {
  await client.delete(resources.customResourceDefinitions, { name: 'widgets.shop.test' })
  await api.until(resources.customResourceDefinitions, { name: 'widgets.shop.test' }, (object) =>
    object === undefined ? true : undefined,
  )
  assert.equal((await client.request('/apis/shop.test/v1/namespaces/default/widgets')).status, 404)
  assert.equal(await client.resolve('shop.test/v1', 'Widget'), undefined)
})
