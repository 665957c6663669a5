// The operator's page names every variable, debug page and metric that there is, and none that there isn't.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from './config/index.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const sourcesOf = (...directories: readonly string[]): readonly string[] =>
  directories
    .flatMap((directory) => globSync(`${directory}/**/*.ts`, { cwd: root }))
    .filter((path) => !path.endsWith('.test.ts'))
const page = read('docs/ztunnel.md')
const section = (title: string): string => {
  const [, text = ''] = page.split(`\n## ${title}\n`)
  return text.split('\n## ')[0] ?? ''
}
const named = (pattern: RegExp, text: string): Set<string> =>
  new Set([...text.matchAll(pattern)].map(([, name = '']) => name))
const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()

const environment = section('Environment')
const documented = named(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+|NETWORK)(?:=[^`]*)?`/g, environment)

/** Loads the configuration; tells the names that were looked for one by one. */
function namesRead(env: Readonly<Record<string, string>>): ReadonlySet<string> {
  const names = new Set<string>()
  const observed = new Proxy(env, {
    get(variables, name) {
      if (typeof name === 'string') names.add(name)
      return typeof name === 'string' ? variables[name] : undefined
    },
  })
  loadConfig({ env: observed, machineCpus: 4, readFile: () => undefined, knowsKeyExchange: () => true })
  return names
}

test('its variables are those that are read', () => {
  const dedicated = { PROXY_MODE: 'dedicated', PROXY_WORKLOAD_INFO: 'n/p/a' }
  const names = [...namesRead({}), ...namesRead(dedicated), ...namesRead({ LATEEN_LOG: 'info' })]
  // Those of the proxy's metadata are looked for without their prefix.
  const metadata = named(/\bproxyMetadata\.([A-Z_]+)/g, read('src/ztunnel/config/load.ts'))
  assert.deepEqual(sorted(documented), sorted([...names, ...[...metadata].map((key) => `ISTIO_META_${key}`)]))
})

test('no other part reads the environment', () => {
  const readers = sourcesOf('src/ztunnel').filter((path) => /\bprocess\.env\.|\bprocess\.env\[/.test(read(path)))
  assert.deepEqual(readers, [])
})

test('its families of variables are those that are read', () => {
  const prefixes = named(/`([A-Z_]+_)<K>`/g, environment)
  const config = sourcesOf('src/ztunnel/config').map(read).join('\n')
  const roles = ['XDS', 'CA'].flatMap((role) =>
    [...named(/`\$\{role\}(_[A-Z_]+_)`/g, config)].map((rest) => `${role}${rest}`),
  )
  assert.deepEqual(sorted(prefixes), sorted([...named(/'([A-Z_]+_)'/g, config), ...roles]))
})

test('its metrics are those that there are', () => {
  const names = /['`]((?:istio|workload_manager|lateen|ztunnel|process)_[a-z_]+)['`]/g
  const registered = named(names, sourcesOf('src/ztunnel', 'src/observability').map(read).join('\n'))
  assert.deepEqual(sorted(named(names, section('Metrics'))), sorted(registered))
})

test('its pages are those that are served', () => {
  const [, servers = ''] = read('src/ztunnel/admin/routes.ts').split('export function adminRoutes')
  const served = named(/'(\/[a-z][a-z_/]*)'/g, servers)
  const paths = /`(?:POST )?(\/[a-z][a-z_/]*)(?:\?[^`]*)?`/g
  const documented = [section('Ports'), section('Admin')].flatMap((text) => [...named(paths, text)])
  // Served by the workers.
  assert.deepEqual(sorted(documented), sorted([...served, '/healthz/ready']))
})
