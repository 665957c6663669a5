import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, readdirSync } from 'node:fs'
import net from 'node:net'
import { after, before, suite, test } from 'node:test'
import {
  createSocket,
  descriptorOf,
  duplicateNetworkNamespace,
  LinuxError,
  openNetworkNamespace,
  originalDestination,
  runInNamespace,
} from './index.ts'

const root = process.getuid?.() === 0 && process.platform === 'linux'
const name = `d-${randomBytes(4).toString('hex')}`
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' })

suite('network namespaces', { skip: root ? false : 'creating network namespaces needs root' }, () => {
  before(() => {
    ip('netns', 'add', name)
    ip('-n', name, 'link', 'set', 'lo', 'up')
  })
  after(() => ip('netns', 'del', name))

  test('a namespace is known by its inode and device, by path or by process', () => {
    using own = openNetworkNamespace(process.pid)
    using other = openNetworkNamespace(`/run/netns/${name}`)
    using again = openNetworkNamespace(`/run/netns/${name}`)
    assert.equal(other.inode, again.inode)
    assert.equal(other.device, again.device)
    assert.notEqual(own.inode, other.inode)
  })

  test('a listener made inside is reached inside and nowhere else', async () => {
    using namespace = openNetworkNamespace(`/run/netns/${name}`)
    const { fd } = createSocket({ family: 6, type: 'stream', bind: { ip: '::', port: 7001 } }, namespace)
    const server = net.createServer((socket) => socket.end('hello'))
    await new Promise<void>((resolve) => server.listen({ fd }, resolve))
    try {
      const inner = createSocket({ family: 4, type: 'stream', mark: 1337 }, namespace)
      const socket = new net.Socket({ fd: inner.fd })
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.connect(7001, '127.0.0.1')
      await new Promise((resolve) => socket.on('close', resolve))
      assert.equal(text, 'hello')
      const outside = net.connect(7001, '127.0.0.1')
      await assert.rejects(new Promise((_, reject) => outside.on('error', reject)), { code: 'ECONNREFUSED' })
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })

  test('the way back is taken when the function throws', () => {
    using namespace = openNetworkNamespace(`/run/netns/${name}`)
    using before = openNetworkNamespace('/proc/thread-self/ns/net')
    assert.throws(
      () =>
        runInNamespace(namespace, () => {
          throw new Error('inner')
        }),
      /inner/,
    )
    using after = openNetworkNamespace('/proc/thread-self/ns/net')
    assert.equal(after.inode, before.inode)
  })

  test('an asynchronous or nested function is refused', () => {
    using namespace = openNetworkNamespace(`/run/netns/${name}`)
    assert.throws(() => runInNamespace(namespace, async () => undefined), TypeError)
    assert.throws(() => runInNamespace(namespace, () => runInNamespace(namespace, () => 1)), TypeError)
  })

  test('a transparent socket binds an address that the host does not have', () => {
    using namespace = openNetworkNamespace(`/run/netns/${name}`)
    const plain = { family: 4, type: 'stream', bind: { ip: '203.0.113.9', port: 0 } } as const
    assert.throws(() => createSocket(plain, namespace), { code: 'EADDRNOTAVAIL' })
    const { fd, transparent } = createSocket({ ...plain, transparent: 'required', freebind: true }, namespace)
    assert.equal(transparent, true)
    new net.Socket({ fd }).destroy()
  })

  test('the original destination of a redirected connection is told', async () => {
    using namespace = openNetworkNamespace(`/run/netns/${name}`)
    const rules = 'table ip t { chain o { type nat hook output priority -100; tcp dport 80 redirect to :7002\n }\n }'
    execFileSync('ip', ['netns', 'exec', name, 'nft', '-f', '-'], { input: rules })
    ip('-n', name, 'addr', 'add', '198.51.100.1/24', 'dev', 'lo')
    const { fd } = createSocket({ family: 6, type: 'stream', bind: { ip: '::', port: 7002 } }, namespace)
    const server = net.createServer()
    await new Promise<void>((resolve) => server.listen({ fd }, resolve))
    try {
      const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve))
      const client = new net.Socket({ fd: createSocket({ family: 4, type: 'stream' }, namespace).fd })
      client.connect(80, '198.51.100.77')
      const socket = await accepted
      const descriptor = descriptorOf(socket)
      assert.ok(descriptor !== undefined)
      assert.deepEqual(originalDestination(descriptor), {
        kind: 'tracked',
        address: { ip: '198.51.100.77', port: 80 },
      })
      socket.destroy()
      client.destroy()
      assert.equal(descriptorOf(socket), undefined)
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })
})

suite('a further descriptor of a namespace', { skip: process.platform !== 'linux' }, () => {
  test('is open when the first is closed', () => {
    const first = openNetworkNamespace('/proc/self/ns/net')
    using second = duplicateNetworkNamespace(first)
    first[Symbol.dispose]()
    assert.equal(fstatSync(second.fd, { bigint: true }).ino, second.inode)
  })

  test("is refused when the first was closed, also where its number is another file's", () => {
    const { fd, inode, device } = openNetworkNamespace('/proc/self/ns/net')
    closeSync(fd)
    assert.throws(() => duplicateNetworkNamespace({ fd, inode, device }), { code: 'EBADF' })
    const others = openSync('/proc/self/ns/uts', 'r')
    try {
      assert.equal(others, fd)
      const before = readdirSync('/proc/self/fd').length
      assert.throws(() => duplicateNetworkNamespace({ fd, inode, device }), { code: 'ESTALE' })
      assert.equal(readdirSync('/proc/self/fd').length, before)
    } finally {
      closeSync(others)
    }
  })
})

test('what a listener accepts has its keepalive', { skip: process.platform !== 'linux' }, async () => {
  const keepalive = { timeSeconds: 170, intervalSeconds: 60, retries: 9, userTimeout: true }
  const { fd } = createSocket({ family: 4, type: 'stream', tcp: { keepalive }, bind: { ip: '127.0.0.1', port: 0 } })
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen({ fd }, resolve))
  try {
    const { port } = server.address() as net.AddressInfo
    const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve))
    const client = net.connect(port, '127.0.0.1')
    const socket = await accepted
    // The timer that the kernel shows for a socket at rest is that of its keepalive, in minutes and seconds.
    const shown = execFileSync('ss', ['-tnoH', 'state', 'established', 'sport', '=', `:${port}`], { encoding: 'utf8' })
    assert.match(shown, /timer:\(keepalive,2min\d\d?sec,0\)/)
    socket.destroy()
    client.destroy()
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
})

test('a failed call names the call and the errno', () => {
  assert.throws(
    () => createSocket({ family: 4, type: 'stream', bind: { ip: '203.0.113.9', port: 80 } }),
    (error) => error instanceof LinuxError && error.syscall === 'bind' && error.code === 'EADDRNOTAVAIL',
  )
})

test('a thread that cannot come back from a namespace takes its process down', {
  skip: process.platform === 'linux' && process.getuid?.() === 0 ? false : 'network namespaces need root',
}, () => {
  const program = `
    import { closeSync, readdirSync, readlinkSync } from 'node:fs'
    import { openNetworkNamespace, runInNamespace } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const open = () => readdirSync('/proc/self/fd').filter((fd) => {
      try { return readlinkSync('/proc/self/fd/' + fd).startsWith('net:') } catch { return false }
    })
    const other = openNetworkNamespace('/proc/self/ns/net')
    runInNamespace(other, () => open().forEach((fd) => closeSync(Number(fd))))
    console.log('went on')`
  const { signal, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 30_000,
  })
  assert.deepEqual([signal, stdout], ['SIGABRT', ''])
})
