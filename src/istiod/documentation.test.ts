// The operator's page names every flag, variable, debug page and metric that there is, and none that there isn't.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { dataflowPicture, withPicture } from '../../test/support/dataflow-picture.ts'
import { createCaMetrics } from '../ca/index.ts'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { ineffectiveVariables } from './ineffective-variables.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const page = read('docs/control-plane.md')
const named = (pattern: RegExp, text: string): Set<string> =>
  new Set([...text.matchAll(pattern)].map(([, name = '']) => name))

test('its flags are those of the command', () => {
  const flags = named(/\.option\(\s*'(?:-\w, )?(--[\w-]+)/g, read('src/commands/discovery.ts'))
  assert.deepEqual(named(/`(--[\w-]+)[` ]/g, page), flags)
})

test('its variables are those that are read', () => {
  const sources = ['settings.ts', 'authentication-settings.ts', 'certificate-settings.ts']
    .map((file) => read(`src/istiod/${file}`))
    .join('\n')
  const variables = named(/(?:env\.|read\.\w+\(\s*')([A-Z][A-Z0-9_]+)/g, sources)
  const section = page.slice(page.indexOf('## Environment'), page.indexOf('## Variables without effect'))
  const documented = named(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+|REVISION|AUDIENCE)`/g, section)
  assert.deepEqual([...documented].sort(), [...variables].sort())
})

test('its variables without effect are those that are told of', () => {
  const told = ineffectiveVariables.flatMap((group) => Object.keys(group.names))
  const section = page.slice(page.indexOf('## Variables without effect'), page.indexOf('## Where configuration'))
  const lists = [...section.matchAll(/^- (?:[^:]|:(?! `[A-Z]))*: (`.*)$/gm)].map(([, list = '']) => list).join()
  assert.deepEqual([...named(/`([A-Z][A-Z0-9_]+)`/g, lists)].sort(), told.sort())
})

test('its debug pages are those that are served', () => {
  const source = read('src/istiod/debug.ts')
  const served = named(/^ {4}(\w+): (?:page\(|\(query)/gm, source)
  const section = page.slice(page.indexOf('## Debug pages'), page.indexOf('The same over xDS'))
  const documented = named(/`([a-z_]+z?)(?:\?[^`]*)?`/g, section.slice(section.indexOf('| ---')))
  assert.deepEqual([...documented].sort(), [...served].sort())
})

/** The names that a certificate authority registers, once each has a value. */
async function authorityMetrics(): Promise<ReadonlySet<string>> {
  const registry = createMetricsRegistry()
  const end = () => new Date()
  createCaMetrics(registry, { root: end, chain: end }).signErrors.with({ error: 'CSR_ERROR' }).inc()
  return named(/^# TYPE (\w+)/gm, await renderMetrics(registry, 'text'))
}

test('its metrics are those that there are', async () => {
  const sources = [
    'xds/server/metrics.ts',
    'istiod/inbound-metrics.ts',
    'istiod/process-metrics.ts',
    'istiod/remote-metrics.ts',
    'istiod/workload-registration/metrics.ts',
  ]
    .map((path) => read(`src/${path}`))
    .join('\n')
  const metrics = /[`']((?:pilot|istiod|remote|lateen|auto_registration|citadel_server|endpoint)_\w+)[`']/g
  const section = page.slice(page.indexOf('## Metrics'))
  const registered = named(metrics, sources).union(await authorityMetrics())
  assert.deepEqual([...named(metrics, section)].sort(), [...registered].sort())
})

test('the picture of the dataflow is that of the dataflow', () => {
  const architecture = read('docs/architecture.md')
  assert.equal(architecture, withPicture(architecture, dataflowPicture()), 'npm run picture draws it anew')
})
