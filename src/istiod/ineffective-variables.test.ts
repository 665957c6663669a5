import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ineffectiveVariables, tellIneffective } from './ineffective-variables.ts'
import { readSettings } from './settings.ts'

function toldOf(env: Readonly<Record<string, string>>): readonly string[] {
  const told: string[] = []
  tellIneffective(env, {
    warn: (_message, fields) => void told.push(`${String(fields?.variable)}: ${String(fields?.reason)}`),
  })
  return told
}

test('a variable of istiod that has no effect is told of, each with what there is instead', () => {
  assert.deepEqual(
    toldOf({ PILOT_DEBOUNCE_AFTER: '1s', PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: 'true', HOME: '/' }),
    [
      'PILOT_DEBOUNCE_AFTER: changes wait for others as LATEEN_WORKLOAD_DEBOUNCE_AFTER and LATEEN_WORKLOAD_DEBOUNCE_MAX say',
      'PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: WorkloadEntries are read from the cluster that holds the configuration alone',
    ],
  )
})

test('one that asks for what is done anyway, or for nothing, is not', () => {
  const env = { PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: 'False', ISTIO_DUAL_STACK: '1', PILOT_TRACE_SAMPLING: '' }
  assert.deepEqual(toldOf(env), [])
  assert.equal(toldOf({ PILOT_PUSH_THROTTLE: '0' }).length, 0)
  assert.equal(toldOf({ PILOT_PUSH_THROTTLE: '20' }).length, 1)
})

test('each is told of for one reason', () => {
  const names = ineffectiveVariables.flatMap((group) => Object.keys(group.names))
  assert.deepEqual(names, [...new Set(names)])
  assert.equal(toldOf(Object.fromEntries(names.map((name) => [name, 'x']))).length, names.length)
})

test('what is for node proxies alone is told of where they are turned away, and is off there', () => {
  const names = [
    'AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY',
    'AMBIENT_ENABLE_MULTI_NETWORK',
    'AMBIENT_ENABLE_STATUS',
    'PILOT_AUTO_ALLOW_WAYPOINT_POLICY',
  ]
  const env = Object.fromEntries(names.map((name) => [name, 'true']))
  const effects = (more: Readonly<Record<string, string>>): readonly boolean[] => {
    const { ambient, writeStatus } = readSettings({}, { ...env, ...more }, 1)
    return [ambient.dryRunPolicies, ambient.multiNetwork, writeStatus, ambient.autoAllowWaypoints]
  }
  assert.deepEqual(toldOf(env), [])
  assert.deepEqual(effects({}), [true, true, true, true])
  const off = { PILOT_ENABLE_AMBIENT: 'false' }
  assert.deepEqual(
    toldOf({ ...env, ...off }),
    names.map((name) => `${name}: it needs PILOT_ENABLE_AMBIENT=true`),
  )
  assert.deepEqual(effects(off), [false, false, false, false])
  assert.deepEqual(toldOf({ ...off, AMBIENT_ENABLE_STATUS: 'false' }), [])
})
