import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { kindsOfCrd, loadKubernetesDefinitions, loadKubernetesKinds, loadMeshCrds } from '../../../api/index.ts'
import { documentsV3, documentV2, indexV3 } from './documents.ts'
import { encodeDocument } from './protobuf.ts'

const shared = await loadKubernetesDefinitions()
const kinds = [...(await loadKubernetesKinds()), ...(await loadMeshCrds()).flatMap(kindsOfCrd)]

/** All references of a document. */
function references(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  const own = '$ref' in node && typeof node.$ref === 'string' ? [node.$ref] : []
  return [...own, ...Object.values(node).flatMap(references)]
}

interface Document {
  readonly definitions: Record<string, Definition>
  readonly paths: Record<string, Record<string, { parameters?: { name: string }[] }>>
}

interface Definition {
  readonly properties?: Record<string, Record<string, unknown>>
  readonly 'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}

const v2 = documentV2(kinds, shared) as unknown as Document

test('every reference of the documents is defined', () => {
  for (const reference of new Set(references(v2))) {
    assert.ok(reference.replace('#/definitions/', '') in v2.definitions, reference)
  }
  for (const { json, path } of documentsV3(kinds, shared).values()) {
    const document = JSON.parse(json) as { components: { schemas: object } }
    for (const reference of new Set(references(document))) {
      assert.ok(reference.replace('#/components/schemas/', '') in document.components.schemas, `${path} ${reference}`)
    }
  }
})

test('every kind has one definition that names it', () => {
  const named = Object.values(v2.definitions)
    .flatMap((definition) => definition['x-kubernetes-group-version-kind'] ?? [])
    .map(({ group, version, kind }) => `${group}/${version}/${kind}`)
  assert.equal(new Set(named).size, named.length)
  for (const { group, version, kind } of kinds) assert.ok(named.includes(`${group}/${version}/${kind}`), kind)
})

test('lists tell how they are merged', () => {
  const containers = v2.definitions['io.k8s.api.core.v1.PodSpec']?.properties?.containers
  assert.equal(containers?.['x-kubernetes-patch-merge-key'], 'name')
  const ports = v2.definitions['io.k8s.api.core.v1.ServiceSpec']?.properties?.ports
  assert.deepEqual(ports?.['x-kubernetes-list-map-keys'], ['port', 'protocol'])
})

test('writes take dryRun and fieldValidation', () => {
  const path = v2.paths['/apis/security.istio.io/v1/namespaces/{namespace}/peerauthentications/{name}']
  const names = path?.patch?.parameters?.map(({ name }) => name)
  assert.ok(names?.includes('dryRun') && names.includes('fieldValidation') && names.includes('fieldManager'))
})

test('the index of version 3 names a document for each group and version', () => {
  const { paths } = indexV3(documentsV3(kinds, shared)) as { paths: Record<string, { serverRelativeURL: string }> }
  assert.match(
    paths['apis/networking.istio.io/v1']?.serverRelativeURL ?? '',
    /^\/openapi\/v3\/apis\/networking\.istio\.io\/v1\?hash=[0-9A-F]{64}$/,
  )
  assert.ok('api/v1' in paths)
})

/** The length-delimited fields of a message by number. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const fields = new Map<number, Uint8Array[]>()
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type !== WireType.LengthDelimited) reader.skip(type)
    else fields.set(field, [...(fields.get(field) ?? []), reader.bytes()])
  }
  return fields
}

test('the protobuf form holds the same definitions', () => {
  const document = fieldsOf(encodeDocument(v2 as unknown as Record<string, unknown>))
  const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes)
  assert.equal(text(document.get(1)?.[0]), '2.0')
  const definitions = fieldsOf(document.get(9)?.[0] ?? new Uint8Array()).get(1) ?? []
  const names = definitions.map((entry) => text(fieldsOf(entry).get(1)?.[0]))
  assert.deepEqual(names.toSorted(), Object.keys(v2.definitions).toSorted())
})
