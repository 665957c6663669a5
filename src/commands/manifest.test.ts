import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'

interface Printed {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: { readonly group: string; readonly versions: readonly { readonly schema?: object }[] }
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[]
    readonly resources?: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

async function printed(...args: string[]): Promise<Printed[]> {
  const program = join(import.meta.dirname, 'main.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'manifest', ...args], {
    maxBuffer: 32 * 1024 * 1024,
  })
  return parseAllDocuments(stdout).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS() as Printed
  })
}

test('manifest crds prints definitions with a schema for each version, those of the Gateway API on request', async () => {
  const [own, all] = await Promise.all([printed('crds'), printed('crds', '--gateway-api')])
  const groups = (crds: readonly Printed[]) => [...new Set(crds.map(({ spec }) => spec?.group))].sort()
  assert.ok(groups(own).includes('security.istio.io') && groups(own).every((group) => group?.endsWith('.istio.io')))
  assert.ok(groups(all).includes('gateway.networking.k8s.io') && all.length > own.length)
  for (const { kind, spec } of all) {
    assert.equal(kind, 'CustomResourceDefinition')
    assert.ok(spec?.versions.every(({ schema }) => schema !== undefined))
  }
})

test('manifest rights prints accounts and rules in the namespace of the mesh, and what is asked for alone', async () => {
  const [least, more] = await Promise.all([printed('rights', '-i', 'mesh'), printed('rights', '--trust-bundles')])
  const accounts = least.filter(({ kind }) => kind === 'ServiceAccount')
  assert.deepEqual(accounts.map(({ metadata }) => metadata.name).sort(), [
    'istio-cni',
    'istio-reader-service-account',
    'istiod',
    'ztunnel',
  ])
  assert.ok(accounts.every(({ metadata }) => metadata.namespace === 'mesh'))
  const reach = (objects: readonly Printed[]) =>
    objects.flatMap(({ rules = [] }) => rules.flatMap(({ resources = [] }) => resources))
  assert.ok(!reach(least).includes('clustertrustbundles') && reach(more).includes('clustertrustbundles'))
  for (const { apiGroups, resources = [], verbs } of more.flatMap(({ rules = [] }) => rules)) {
    assert.ok(!verbs.includes('*'))
    assert.ok(!resources.includes('*') || apiGroups?.every((group) => group.endsWith('.istio.io')), 'of Istio alone')
  }
})
