import assert from 'node:assert/strict'
import test from 'node:test'
import { setprivArguments } from './capabilities.ts'
import { imageMessage, planContainer } from './container-plan.ts'
import { ConfigError } from './environment.ts'
import type { Container } from './types.ts'

const given = { environment: new Map([['PORT', '80']]), mounts: [], hostname: 'h', path: '/bin' }
const spec = { containers: [] }
const everyId = { hasUser: () => true, hasGroup: () => true, canSetGroups: true }
const container = (more: Partial<Container>): Container => ({ name: 'c', image: 'host', ...more })

test('command and arguments are expanded and joined', () => {
  const plan = planContainer(spec, container({ command: ['serve', '$(PORT)'], args: ['$$(PORT)'] }), given)
  assert.deepEqual(plan.argv, ['serve', '80', '$(PORT)'])
  assert.equal(plan.environment.HOSTNAME, 'h')
})

test('a container without a command is refused', () => {
  assert.throws(() => planContainer(spec, container({ args: ['x'] }), given), /has no command/)
})

test('an image is answered with what to do', () => {
  assert.match(imageMessage(container({ image: 'nginx:1' })), /"nginx:1" is not available.*Set "image: host"/)
})

test('without a security context a container keeps what runtimes agree on', () => {
  const [, , bounding = ''] = setprivArguments(spec, container({}))
  assert.match(bounding, /\+net_bind_service/)
  assert.doesNotMatch(bounding, /net_admin|sys_admin/)
})

test('capabilities are dropped and added', () => {
  const words = setprivArguments(
    spec,
    container({ securityContext: { capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'CAP_SYS_ADMIN'] } } }),
  )
  assert.ok(words.includes('--bounding-set=-all,+net_admin,+sys_admin'))
})

test('a privileged container gives up nothing', () => {
  assert.deepEqual(setprivArguments(spec, container({ securityContext: { privileged: true } })), [])
})

test('users and groups: the container wins over the pod', () => {
  const words = setprivArguments(
    { containers: [], securityContext: { runAsUser: 1, runAsGroup: 2, fsGroup: 3 } },
    container({ securityContext: { runAsUser: 4, privileged: true, allowPrivilegeEscalation: false } }),
    everyId,
  )
  assert.deepEqual(words, ['setpriv', '--reuid=4', '--regid=2', '--groups=3', '--no-new-privs', '--'])
})

test('runAsNonRoot needs a user that is not root', () => {
  const context = { runAsNonRoot: true }
  assert.throws(() => setprivArguments(spec, container({ securityContext: context })), ConfigError)
  assert.throws(() => setprivArguments(spec, container({ securityContext: { ...context, runAsUser: 0 } })), ConfigError)
  assert.ok(setprivArguments(spec, container({ securityContext: { ...context, runAsUser: 5 } })).length > 0)
})

test('without root a container keeps the one user there is', () => {
  const none = { hasUser: (id: number) => id === 0, hasGroup: (id: number) => id === 0, canSetGroups: false }
  const context = { runAsUser: 1000, runAsGroup: 1000, privileged: true }
  assert.deepEqual(setprivArguments(spec, container({ securityContext: context }), none), [
    'setpriv',
    '--keep-groups',
    '--',
  ])
})
