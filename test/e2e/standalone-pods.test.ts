// `lateen up` with pods outside the mesh, as root: pods, services, names, volumes, probes, restarts, and an end that leaves nothing.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { resources } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { instancePaths } from '../../src/standalone/index.ts'

const lateen = join(import.meta.dirname, '../../bin/lateen.js')
const asRoot = process.getuid?.() === 0
const skip = asRoot ? false : 'needs root'
const options = { skip, timeout: 120_000 }

const directory = await mkdtemp(join(tmpdir(), `h-up-${randomBytes(3).toString('hex')}-`))
await chmod(directory, 0o755) // as the one of a state directory usually is
const stateDir = join(directory, 'state')
const { instance, kubeconfig, run: runDirectory } = instancePaths(stateDir)
let client: KubeClient

interface Pod {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { name: string; namespace?: string; labels?: Record<string, string>; uid?: string }
  readonly status?: {
    phase?: string
    podIP?: string
    containerStatuses?: {
      ready: boolean
      restartCount: number
      state?: { waiting?: { reason?: string; message?: string }; terminated?: { exitCode: number; message?: string } }
    }[]
  }
}

async function command(...words: string[]): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [lateen, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 137, output }
}

async function inPod(pod: string, script: string): Promise<string> {
  const { code, output } = await command('exec', '--state-dir', stateDir, pod, '--', 'sh', '-c', script)
  assert.equal(code, 0, output)
  return output
}

async function pod(name: string, holds: (pod: Pod) => boolean): Promise<Pod> {
  await using informer = client.informer<Pod>(resources.pods, { fieldSelector: `metadata.name=${name}` })
  const { promise, resolve } = Promise.withResolvers<Pod>()
  informer.subscribe((changes) => {
    for (const { kind, object } of changes) if (kind !== 'deleted' && holds(object)) resolve(object)
  })
  return await promise
}

const isReady = ({ status }: Pod) => status?.containerStatuses?.every((one) => one.ready) === true

const server = `
const http = require('node:http')
http.createServer((q, r) => r.end(process.env.NAME + ' ' + process.env.GREETING + ' ' + q.socket.remoteAddress)).listen(8080)
`
const manifests = `
apiVersion: v1
kind: ConfigMap
metadata: { name: cfg }
data: { greeting: hello }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      terminationGracePeriodSeconds: 2
      containers:
        - name: web
          image: host
          command: [${JSON.stringify(process.execPath)}, -e, ${JSON.stringify(server)}]
          env:
            - { name: NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
            - { name: GREETING, valueFrom: { configMapKeyRef: { name: cfg, key: greeting } } }
          readinessProbe: { httpGet: { path: /, port: 8080 } }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: client }
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
    - { name: prepare, image: host, command: [sh, -c, "echo prepared > /work-volume/file"], volumeMounts: [{ name: work, mountPath: /work-volume }] }
  containers:
    - name: c
      image: host
      command: [sleep, "1000"]
      volumeMounts: [{ name: work, mountPath: /work-volume }, { name: cfg, mountPath: /etc/cfg-volume }]
  volumes: [{ name: work, emptyDir: {} }, { name: cfg, configMap: { name: cfg } }]
---
apiVersion: v1
kind: Pod
metadata: { name: image }
spec: { containers: [{ name: c, image: "nginx:1" }] }
---
apiVersion: v1
kind: Pod
metadata: { name: once }
spec:
  restartPolicy: Never
  containers: [{ name: c, image: host, command: [sh, -c, "echo first; echo second; echo last words > /dev/termination-log; exit 3"] }]
---
apiVersion: v1
kind: Secret
metadata: { name: word }
stringData: { word: sesame }
---
apiVersion: v1
kind: Pod
metadata: { name: user }
spec:
  restartPolicy: Never
  securityContext: { runAsUser: 1000, runAsGroup: 1000 }
  containers:
    - name: c
      image: host
      command: [sh, -c, "id -u; cat /srv-word/word; echo; ls ${stateDir}/nodes/*/pods; head -c 5 ${stateDir}/apiserver.db; echo over > /dev/termination-log"]
      volumeMounts: [{ name: word, mountPath: /srv-word }]
  volumes: [{ name: word, secret: { secretName: word } }]
`

before(async () => {
  if (!asRoot) return
  await writeFile(join(directory, 'app.yaml'), manifests)
  const { code, output } = await command(
    'up',
    '--detach',
    '--no-mesh',
    '--no-sample',
    '--nodes',
    '2',
    '--state-dir',
    stateDir,
  )
  assert.equal(code, 0, output)
  client = await createKubeClient({ kubeconfig })
  const applied = await command('apply', '--state-dir', stateDir, '-f', join(directory, 'app.yaml'))
  assert.equal(applied.code, 0, applied.output)
}, options)

after(async () => {
  await client?.close()
  if (asRoot) await command('down', '--state-dir', stateDir)
  await rm(directory, { recursive: true, force: true })
}, options)

test('a pod reaches a service by its name, whichever node its backends are on', options, async () => {
  await pod('client', isReady)
  const { items } = await client.list<Pod>(resources.pods, { labelSelector: 'app=web' })
  for (const { metadata } of items) await pod(metadata.name, isReady)
  const seen = new Set<string>()
  const all = items.map(({ metadata }) => metadata.name)
  for (let count = 0; count < 200 && seen.size < all.length; count += 1) {
    const answer = await inPod('client', 'for i in 1 2 3 4 5 6; do curl -sS -m 3 http://web/; echo; done')
    for (const line of answer.trim().split('\n')) {
      const [name = '', greeting] = line.split(' ')
      assert.equal(greeting, 'hello')
      seen.add(name)
    }
  }
  assert.deepEqual([...seen].sort(), all.sort())
})

test('the backend sees the address of the pod that calls', options, async () => {
  const { status } = await pod('client', isReady)
  assert.match(
    await inPod('client', 'curl -sS -m 3 http://web.default.svc.cluster.local/'),
    new RegExp(`${status?.podIP}$`),
  )
})

test('volumes, host name and name files are the pod’s own', options, async () => {
  await pod('client', isReady)
  const output = await inPod(
    'client',
    'cat /work-volume/file /etc/cfg-volume/greeting; echo; hostname; cat /etc/resolv.conf',
  )
  assert.match(output, /^prepared\nhello\nclient\nsearch default\.svc\.cluster\.local/)
  assert.ok(!existsSync('/work-volume') && !existsSync('/etc/cfg-volume'), 'mount points are not made on the host')
})

test('the service account’s token is accepted by the API server', options, async () => {
  await pod('client', isReady)
  const output = await inPod(
    'client',
    'cd /var/run/secrets/kubernetes.io/serviceaccount && curl -sS -m 5 --cacert ca.crt -H "Authorization: Bearer $(cat token)" https://kubernetes.default.svc/apis/authentication.k8s.io/v1/',
  )
  assert.match(output, /APIResourceList/)
})

test('an image is refused with what to do', options, async () => {
  const { status } = await pod(
    'image',
    (one) => one.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImageNeverPull',
  )
  assert.match(status?.containerStatuses?.[0]?.state?.waiting?.message ?? '', /Set "image: host"/)
})

test('kubectl port-forward is refused with what to do instead', options, async (t) => {
  if (spawnSync('kubectl', ['version', '--client']).status !== 0) return t.skip('needs kubectl')
  const words = ['--kubeconfig', kubeconfig, 'port-forward', 'pod/client', ':80']
  const { status, stderr } = spawnSync('kubectl', words, { encoding: 'utf8', timeout: 30_000 })
  assert.equal(status, 1)
  assert.match(stderr, /port-forward is not served here, reach the port from within by kubectl exec or lateen exec/)
})

test('a pod that runs once ends with its code and its last words', options, async () => {
  const { status } = await pod('once', (one) => one.status?.phase === 'Failed')
  const end = status?.containerStatuses?.[0]?.state?.terminated
  assert.deepEqual([end?.exitCode, end?.message], [3, 'last words\n'])
})

test(
  'a pod of another user has its Secrets and last words, and cannot read what the machine keeps of others',
  options,
  async () => {
    const { status } = await pod('user', (one) => one.status?.containerStatuses?.[0]?.state?.terminated !== undefined)
    const end = status?.containerStatuses?.[0]?.state?.terminated
    assert.deepEqual([end?.exitCode, end?.message], [0, 'over\n'])
    const { output } = await command('logs', '--state-dir', stateDir, 'user')
    assert.match(output, /^1000\nsesame\n/)
    assert.match(output, /ls: .*\/pods'?: Permission denied/)
    assert.match(output, /head: .*apiserver\.db'?.*: Permission denied/)
  },
)

test('logs: newer than a time, with times, and nothing for a wrong number', options, async () => {
  const { metadata } = await pod('once', (one) => one.status?.phase === 'Failed')
  const logs = (...words: string[]) => command('logs', '--state-dir', stateDir, metadata.name, ...words)
  assert.match((await logs('--timestamps')).output, /^\d{4}-\d\d-\d\dT[\d:.]+Z first\n[^ ]+Z second\n$/)
  assert.equal((await logs('--since', '1h', '--tail', '1')).output, 'second\n')
  for (const wrong of [
    ['--since', 'soon'],
    ['--since', '-5'],
    ['--tail', 'x'],
  ]) {
    const { code, output } = await logs(...wrong)
    assert.deepEqual([code, /expected|invalid/.test(output)], [1, true], output)
  }
  const later = new Date(Date.now() + 60_000).toISOString()
  const path = `/api/v1/namespaces/default/pods/${metadata.name}/log`
  assert.equal(await (await client.request(`${path}?sinceTime=${later}`)).text(), '')
  assert.equal((await client.request(`${path}?sinceTime=noon`)).status, 400)
})

test('what is wrong in a manifest is told with file, line and field, and nothing is changed', options, async () => {
  const good = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: unwanted }\n'
  const wrong = {
    '6: spec.containers[0].ports[0].containerPort':
      'apiVersion: v1\nkind: Pod\nmetadata: { name: a }\nspec:\n  containers:\n    - { name: c, image: host, ports: [{ containerPort: x }] }\n',
    '6: data.a': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: 1\n',
    '6: spec.mtls.mode':
      'apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: { name: a }\nspec:\n  mtls:\n    mode: STRCT\n',
    '2: kind': 'apiVersion: v1\nkind: Foo\nmetadata: { name: a }\n',
    ' is no text': 'a\0b',
  }
  for (const [index, [where, text]] of Object.entries(wrong).entries()) {
    const file = join(directory, `wrong-${index}.yaml`)
    await writeFile(file, text)
    await writeFile(join(directory, 'good.yaml'), good)
    const files = ['-f', join(directory, 'good.yaml'), '-f', file]
    const { code, output } = await command('apply', '--state-dir', stateDir, ...files)
    assert.equal(code, 1, output)
    assert.ok(output.startsWith(`${file}:${where}`), `${where}: ${output}`)
  }
  assert.equal((await command('get', '--state-dir', stateDir, 'cm', 'unwanted')).code, 1)
})

test('containers go on while their node process and the API server are killed', options, async () => {
  await pod('client', isReady)
  const pidOf = async () =>
    (await inPod('client', 'cat /proc/1/stat >/dev/null; pgrep -f "^sleep 1000$" | head -1')).trim()
  const pidBefore = await pidOf()
  const records = JSON.parse(readFileSync(join(stateDir, 'processes.json'), 'utf8')) as { name: string; pid: number }[]
  for (const { name, pid } of records) if (name !== 'controllers') process.kill(pid, 'SIGKILL')
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setInterval(async () => {
    const { code } = await command('exec', '--state-dir', stateDir, 'client', '--', 'true')
    if (code === 0) resolve()
  }, 500)
  await promise
  clearInterval(timer)
  assert.equal(await pidOf(), pidBefore)
  assert.match(await inPod('client', 'curl -sS -m 3 http://web/'), /hello/)
})

test('down leaves nothing on the host', options, async () => {
  const { code, output } = await command('down', '--state-dir', stateDir)
  assert.equal(code, 0, output)
  const named = (names: readonly string[]) => names.filter((name) => name.includes(instance))
  assert.deepEqual(named(readdirSync('/run/netns')), [])
  assert.deepEqual(named(readdirSync('/sys/class/net')), [])
  assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(stateDir))
  assert.ok(!existsSync(stateDir) && !existsSync(runDirectory))
  const left = readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(stateDir)
    } catch {
      return false
    }
  })
  assert.deepEqual(left, [])
})
