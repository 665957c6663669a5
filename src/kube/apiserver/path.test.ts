import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTarget, verbOf } from './path.ts'

const cases: readonly (readonly [string, string, object, string])[] = [
  ['GET', '/api/v1/pods', { plural: 'pods', group: '', version: 'v1' }, 'list'],
  ['GET', '/api/v1/namespaces/a/pods/p', { namespace: 'a', plural: 'pods', name: 'p' }, 'get'],
  ['GET', '/api/v1/namespaces/a', { plural: 'namespaces', name: 'a' }, 'get'],
  ['PUT', '/api/v1/namespaces/a/status', { plural: 'namespaces', name: 'a', subresource: 'status' }, 'update'],
  ['PUT', '/api/v1/namespaces/a/finalize', { plural: 'namespaces', name: 'a', subresource: 'finalize' }, 'update'],
  ['GET', '/apis/apps/v1/namespaces/a/deployments?watch=true', { group: 'apps', namespace: 'a' }, 'watch'],
  ['GET', '/api/v1/watch/namespaces/a/pods', { namespace: 'a', plural: 'pods', watchPath: true }, 'watch'],
  ['POST', '/api/v1/namespaces/a/pods/p/exec?command=ls', { name: 'p', subresource: 'exec' }, 'create'],
  ['DELETE', '/api/v1/namespaces/a/pods', { plural: 'pods' }, 'deletecollection'],
  ['GET', '/api/v1/nodes/n/proxy/a/b', { plural: 'nodes', name: 'n', subresource: 'proxy', rest: 'a/b' }, 'get'],
]

for (const [method, text, expected, verb] of cases) {
  test(`${method} ${text} is ${verb}`, () => {
    const url = new URL(text, 'https://x')
    const target = parseTarget(url.pathname)
    assert.equal(target.kind, 'resource')
    assert.deepEqual({ ...target, ...expected }, target)
    assert.equal(verbOf(method, target, url.searchParams), verb)
  })
}

for (const path of ['/', '/api', '/api/v1', '/apis', '/apis/apps', '/apis/apps/v1', '/healthz', '/api/v1/%E0%A4%A']) {
  test(`${path} is no resource`, () => {
    assert.deepEqual(parseTarget(path), { kind: 'path', path })
  })
}
