// The embedded API under the real kubectl. KUBECTL names the programs to try (separated by colons); by default the one in the path.

import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'

const programs = (process.env.KUBECTL ?? 'kubectl').split(':')

for (const program of programs) {
  const isThere = spawnSync(program, ['version', '--client']).status === 0
  describe(`with ${program}`, { skip: isThere ? false : `there is no ${program}` }, () => suite(program))
}

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

const deployment = (replicas: number, more = '') => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: host
        command: [sleep, "1000"]
        ports: [{containerPort: 80}]
${more}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, name: http}]}
`

function suite(program: string): void {
  let api: ApiProcess
  before(async () => {
    api = await startApiProcess()
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
  })

  function run(input: string, ...args: string[]): Promise<Outcome> {
    return new Promise((resolve) => {
      const env = { ...process.env, KUBECONFIG: api.kubeconfig, HOME: dirname(api.kubeconfig) }
      const child = execFile(program, args, { env, timeout: 30_000 }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 255, out, err })
      })
      child.stdin?.end(input)
    })
  }

  async function ok(...args: string[]): Promise<string> {
    const { code, out, err } = await run('', ...args)
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${err}`)
    return out
  }

  async function okWith(input: string, ...args: string[]): Promise<string> {
    const { code, out, err } = await run(input, ...args)
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${err}`)
    return out
  }

  /** Asks the server until it serves that many watches of config maps. */
  async function watchesOfConfigMaps(wanted: number): Promise<void> {
    const deadline = Date.now() + 10_000
    const line = /^apiserver_longrunning_requests\{.*resource="configmaps".*\} (\d+)$/m
    while (Number(line.exec(await ok('get', '--raw', '/metrics'))?.[1] ?? 0) !== wanted) {
      assert.ok(Date.now() < deadline, `there were never ${wanted} watches of config maps`)
    }
  }

  test('version and api-resources', async () => {
    assert.match(await ok('version'), /Server Version/)
    const resources = await ok('api-resources')
    assert.match(resources, /^pods +po +(v1) +true +Pod$/m)
    assert.match(resources, /^deployments +deploy +apps\/v1 +true +Deployment$/m)
    assert.match(await ok('api-versions'), /^apps\/v1$/m)
  })

  test('apply creates, does nothing, changes, and prunes what the file no longer has', async () => {
    assert.match(await okWith(deployment(1), 'apply', '-f', '-'), /deployment.apps\/web created\nservice\/web created/)
    assert.match(
      await okWith(deployment(1), 'apply', '-f', '-'),
      /deployment.apps\/web unchanged\nservice\/web unchanged/,
    )
    const more = '        env: [{name: A, value: b}]'
    assert.match(await okWith(deployment(2, more), 'apply', '-f', '-'), /deployment.apps\/web configured/)
    const path = 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].env[0].value}'
    assert.equal(await ok('get', 'deployment', 'web', '-o', path), '2 b')
    await okWith(deployment(2), 'apply', '-f', '-')
    assert.equal(await ok('get', 'deployment', 'web', '-o', path), '2 ')
  })

  test('diff shows what apply would change, and changes nothing', async () => {
    const { code, out } = await run(deployment(7), 'diff', '-f', '-')
    assert.equal(code, 1)
    assert.match(out, /^- {2}replicas: 2$/m)
    assert.match(out, /^\+ {2}replicas: 7$/m)
    assert.equal(await ok('get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}'), '2')
  })

  test('get in every form', async () => {
    assert.match(await ok('get', 'deployments'), /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/2 +0 +0 +\d+s$/m)
    assert.match(await ok('get', 'deploy', 'web', '-o', 'wide'), /CONTAINERS +IMAGES +SELECTOR\n.*web +host +app=web/)
    assert.match(await ok('get', 'svc', 'web', '-o', 'yaml'), /^kind: Service$/m)
    assert.equal(JSON.parse(await ok('get', 'svc', 'web', '-o', 'json')).spec.ports[0].name, 'http')
    assert.equal(await ok('get', 'svc', 'web', '-o', 'name'), 'service/web\n')
    const columns = 'custom-columns=NAME:.metadata.name,PORT:.spec.ports[0].port'
    assert.equal(await ok('get', 'svc', 'web', '-o', columns, '--no-headers'), 'web   80\n')
    assert.match(await ok('get', 'all', '-A'), /deployment.apps\/web/)
    assert.equal(await ok('get', '--raw', '/readyz'), 'ok')
    assert.match(
      await ok('get', 'svc', '-l', 'app!=x', '--field-selector', 'metadata.name=web', '-o', 'name'),
      /service\/web/,
    )
    assert.match(await ok('describe', 'deployment', 'web'), /Selector: +app=web/)
  })

  test('create from standard input and by name; create again is refused', async () => {
    const map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n'
    assert.equal(await okWith(map, 'create', '-f', '-'), 'configmap/m created\n')
    const again = await run(map, 'create', '-f', '-')
    assert.equal(again.code, 1)
    assert.match(again.err, /AlreadyExists/)
    await ok('create', 'namespace', 'made')
    await ok('create', 'secret', 'generic', 's', '--from-literal=a=b', '-n', 'made')
    await ok('create', 'configmap', 'c', '--from-literal=a=b', '-n', 'made')
    await ok('create', 'serviceaccount', 'sa', '-n', 'made')
    await ok('create', 'deployment', 'd', '--image=host', '-n', 'made')
    await ok('create', 'role', 'r', '--verb=get', '--resource=pods', '-n', 'made')
    await ok('create', 'rolebinding', 'rb', '--role=r', '--serviceaccount=made:sa', '-n', 'made')
    await ok('create', 'job', 'j', '--image=host', '-n', 'made', '--', 'true')
    await ok('expose', 'deployment', 'd', '--port=80', '-n', 'made')
    assert.equal(await ok('get', 'secret', 's', '-n', 'made', '-o', 'jsonpath={.data.a}'), 'Yg==')
    assert.match(await ok('auth', 'can-i', 'get', 'pods', '-n', 'made', '--as=system:serviceaccount:made:sa'), /yes/)
    const denied = await run('', 'auth', 'can-i', 'delete', 'pods', '-n', 'made', '--as=system:serviceaccount:made:sa')
    assert.equal(denied.code, 1)
    assert.match(denied.out, /^no\b/)
  })

  test('edit by patch, label, annotate, scale', async () => {
    await ok('patch', 'configmap', 'm', '-p', '{"data":{"c":"d"}}')
    await ok('patch', 'configmap', 'm', '--type=json', '-p', '[{"op":"remove","path":"/data/a"}]')
    await ok('patch', 'configmap', 'm', '--type=merge', '-p', '{"data":{"e":"f"}}')
    assert.equal(await ok('get', 'configmap', 'm', '-o', 'jsonpath={.data}'), '{"c":"d","e":"f"}')
    await ok('label', 'configmap', 'm', 'a=b')
    assert.equal((await run('', 'label', 'configmap', 'm', 'a=c')).code, 1)
    await ok('label', 'configmap', 'm', 'a=c', '--overwrite')
    await ok('annotate', 'configmap', 'm', 'x=y')
    await ok('label', 'configmap', 'm', 'a-')
    assert.equal(
      await ok('get', 'configmap', 'm', '-o', 'jsonpath={.metadata.labels}/{.metadata.annotations}'),
      '/{"x":"y"}',
    )
    assert.match(await ok('scale', 'deployment', 'web', '--replicas=4'), /scaled/)
    assert.equal(await ok('get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}'), '4')
    await ok('set', 'image', 'deployment/web', 'web=host2')
    assert.equal(await ok('get', 'deployment', 'web', '-o', 'jsonpath={..image}'), 'host2')
  })

  test('server-side apply, with a conflict and with force', async () => {
    const map = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {a: ${value}}\n`
    assert.match(await okWith(map('one'), 'apply', '--server-side', '-f', '-'), /serverside-applied/)
    const refused = await run(map('two'), 'apply', '--server-side', '--field-manager=other', '-f', '-')
    assert.equal(refused.code, 1)
    assert.match(refused.err, /conflict with "kubectl".*: \.data\.a/)
    await okWith(map('two'), 'apply', '--server-side', '--field-manager=other', '--force-conflicts', '-f', '-')
    assert.equal(await ok('get', 'configmap', 'ssa', '-o', 'jsonpath={.data.a}'), 'two')
  })

  test('what is wrong with a manifest is said', async () => {
    const unknown = await run(
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndta: {a: b}\n',
      'apply',
      '-f',
      '-',
    )
    assert.equal(unknown.code, 1)
    assert.match(unknown.err, /unknown field "(ConfigMap\.)?dta"|unknown field "dta"/)
    const invalid = await run('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n', 'create', '-f', '-')
    assert.match(invalid.err, /metadata\.name: Invalid value: "Bad_Name"/)
    const noKind = await run('apiVersion: nope/v1\nkind: Nope\nmetadata: {name: x}\n', 'create', '-f', '-')
    assert.match(noKind.err, /no matches for kind "Nope"/)
  })

  test('explain reads the schemas', async () => {
    assert.match(await ok('explain', 'pod.spec.containers.image'), /image/i)
    assert.match(await ok('explain', 'deployment'), /KIND: +Deployment/)
  })

  test('wait and get --watch see what happens', async () => {
    const env = { ...process.env, KUBECONFIG: api.kubeconfig, HOME: dirname(api.kubeconfig) }
    const args = ['get', 'configmaps', '--watch-only', '-o', 'name']
    // A process group of its own: some installations start the real kubectl from a wrapper.
    const watching = spawn(program, args, { env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    try {
      const first = createInterface({ input: watching.stdout })[Symbol.asyncIterator]().next()
      await watchesOfConfigMaps(1)
      await ok('create', 'configmap', 'seen')
      assert.equal((await first).value, 'configmap/seen')
    } finally {
      if (watching.pid !== undefined) process.kill(-watching.pid)
    }
    await watchesOfConfigMaps(0)
    await ok('create', 'configmap', 'waited')
    const waiting = run('', 'wait', '--for=delete', 'configmap/waited', '--timeout=20s')
    await watchesOfConfigMaps(1)
    await ok('delete', 'configmap', 'waited')
    assert.equal((await waiting).code, 0)
  })

  test('delete by file, by name, by label, and of a namespace with all in it', async () => {
    assert.match(await okWith(deployment(1), 'delete', '-f', '-'), /deployment.apps "web" deleted/)
    await ok('create', 'configmap', 'labelled')
    await ok('label', 'configmap', 'labelled', 'gone=yes')
    assert.match(await ok('delete', 'configmap', '-l', 'gone=yes'), /configmap "labelled" deleted/)
    await ok('delete', 'namespace', 'made', '--timeout=20s')
    assert.match((await run('', 'get', 'namespace', 'made')).err, /NotFound/)
    assert.match((await run('', 'delete', 'configmap', 'none')).err, /NotFound/)
    assert.equal(await ok('delete', 'configmap', 'none', '--ignore-not-found'), '')
  })

  test('a custom resource is served when its definition is', async () => {
    const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Sails, type: integer, jsonPath: .spec.sails}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [sails], properties: {sails: {type: integer, minimum: 1}}}
`
    await okWith(definition, 'apply', '-f', '-')
    await ok('wait', '--for=condition=Established', 'crd/boats.example.com', '--timeout=20s')
    const boat = (sails: string) =>
      `apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: b}\nspec: {sails: ${sails}}\n`
    await okWith(boat('2'), 'apply', '-f', '-')
    assert.match(await ok('get', 'bt'), /^NAME +SAILS\nb +2$/m)
    const refused = await run(boat('0'), 'apply', '-f', '-')
    assert.match(refused.err, /spec\.sails/)
    await ok('patch', 'boat', 'b', '--type=merge', '-p', '{"spec":{"sails":3}}')
    assert.equal(await ok('get', 'boat', 'b', '-o', 'jsonpath={.spec.sails}'), '3')
    await ok('delete', 'crd', 'boats.example.com', '--timeout=20s')
  })
}
