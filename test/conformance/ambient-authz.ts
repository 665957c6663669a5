// Policies as node proxies get them, and the conditions their owners see.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonValue } from '@bufbuild/protobuf'
import type { Condition } from '../../src/api/index.ts'
import type { ConformanceCase, ListCases } from './adapter.ts'
import { authorizationOf, expectedAuthorization } from './ambient/compare.ts'
import { createMesh, type Mesh, readObjects, readYaml } from './ambient/mesh.ts'

const cluster = 'cluster0'

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir)
    .filter((name) => statSync(join(suiteDir, name)).isDirectory())
    .map((name): ConformanceCase => {
      const dir = join(suiteDir, name)
      if (name.startsWith('convert-')) return { name, run: () => runConversion(dir) }
      if (name.startsWith('ztunnel-status-')) return { name, run: () => runStatus(dir, 'ZtunnelAccepted') }
      if (name.startsWith('waypoint-status-')) return { name, run: () => runStatus(dir, 'WaypointAccepted') }
      return { name, run: () => assert.fail(`unknown kind of case: ${name}`) }
    })

function meshOf(dir: string): Mesh {
  const flags = join(dir, 'flags.yaml')
  const mesh = createMesh({ clusterId: cluster }, existsSync(flags) ? readYaml(flags) : {}, {})
  mesh.change({ [cluster]: readObjects(join(dir, 'input.yaml')) }, {})
  return mesh
}

function authorizations({ index }: Mesh): JsonValue[] {
  return [...index.authorizations.list()]
    .filter(({ name }) => name !== 'istio-system/istio_converted_static_strict')
    .map(authorizationOf)
}

function runConversion(dir: string): void {
  const expected = readYaml<JsonValue>(join(dir, 'expected.yaml'))
  assert.deepEqual(authorizations(meshOf(dir)), expected === null ? [] : [expectedAuthorization(expected)])
}

function runStatus(dir: string, type: string): void {
  const expected = readYaml<{ authorization: JsonValue; conditions: Condition[] }>(join(dir, 'expected.yaml'))
  const mesh = meshOf(dir)
  assert.deepEqual(
    authorizations(mesh),
    expected.authorization === null ? [] : [expectedAuthorization(expected.authorization)],
  )
  const found = [...mesh.index.conditions.entries()]
    .filter(([, { kind }]) => kind === 'AuthorizationPolicy')
    .flatMap(([, { conditions }]) => conditions)
    .filter((condition) => condition.type === type)
  const wanted = expected.conditions.map(({ lastTransitionTime: _, ...condition }) => condition)
  const shown = found.map((condition, at) => {
    const { observedGeneration, ...rest } = condition
    return wanted[at]?.observedGeneration === undefined ? rest : { ...rest, observedGeneration }
  })
  assert.deepEqual(shown, wanted)
}
