import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import net from 'node:net'
import { test } from 'node:test'
import { createTunnelBalance, createTunnelCounts, createTunnelLinks, type TunnelBalance } from './tunnel-balance.ts'

const pod = 7

/** Two workers, of which the first accepts every connection. */
async function world(t: { after(end: () => void): void }) {
  const counts = createTunnelCounts(2)
  const stuck: number[] = []
  /** By worker: running, draining, or gone. */
  const pods = ['running', 'running'] as ('running' | 'draining' | 'gone')[]
  const served: { worker: number; socket: net.Socket }[] = []
  const waiting: Promise<void>[] = []
  const nothing = (): void => undefined
  let look = nothing
  const hooks = { placed: nothing }
  const serve = (worker: number, socket: net.Socket) => {
    served.push({ worker, socket })
    look()
  }
  const balances = createTunnelLinks(2).map((links, index) =>
    createTunnelBalance({
      index,
      counts,
      links,
      stuck: () => stuck,
      canTake: (id, isOwn) => id === pod && (pods[index] === 'running' || (isOwn && pods[index] === 'draining')),
      take: (_, socket) => serve(index, socket),
    }),
  ) as [TunnelBalance, TunnelBalance]
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    const place = balances[0].place(pod, socket)
    if (place === 'here') serve(0, socket)
    else waiting.push(place)
    hooks.placed()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const clients: net.Socket[] = []
  t.after(() => {
    for (const { socket } of served) socket.destroy()
    for (const client of clients) client.destroy()
    for (const balance of balances) balance[Symbol.dispose]()
    server.close()
  })
  return {
    counts,
    stuck,
    pods,
    hooks,
    served,
    waiting,
    connect(text: string): net.Socket {
      const client = net.connect(port, '127.0.0.1')
      client.on('error', () => undefined)
      client.write(text)
      clients.push(client)
      return client
    },
    async until(holds: () => boolean): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      look = () => void (holds() && resolve())
      look()
      await promise
    },
  }
}

const firstBytes = async (socket: net.Socket): Promise<string> => {
  const data = once(socket, 'data')
  socket.resume()
  return String((await data)[0])
}

test('connections go to the worker with the fewest, with what was sent already and the addresses of both ends', async (t) => {
  const { served, connect, until, counts, waiting } = await world(t)
  const clients: net.Socket[] = []
  for (const [index, text] of ['one', 'two', 'three', 'four'].entries()) {
    clients.push(connect(text))
    await until(() => served.length === index + 1)
  }
  assert.deepEqual(
    served.map(({ worker }) => worker),
    [0, 1, 0, 1],
  )
  await Promise.all(waiting)
  for (const [index, { socket }] of served.entries()) {
    const client = clients[index]
    assert.ok(client)
    assert.equal(await firstBytes(socket), ['one', 'two', 'three', 'four'][index])
    assert.deepEqual([socket.remotePort, socket.localPort], [client.localPort, client.remotePort])
    const answered = once(client, 'data')
    socket.write('answer')
    assert.equal(String((await answered)[0]), 'answer')
  }
  assert.deepEqual([...counts], [2, 2])
  const closed = served.map(({ socket }) => once(socket, 'close'))
  for (const { socket } of served) socket.destroy()
  await Promise.all(closed)
  assert.deepEqual([...counts], [0, 0])
})

test('of two that arrive together each worker gets one', async (t) => {
  const { served, connect, until } = await world(t)
  connect('one')
  connect('two')
  await until(() => served.length === 2)
  assert.deepEqual(served.map(({ worker }) => worker).sort(), [0, 1])
})

test('a worker that stands still is given nothing', async (t) => {
  const { served, connect, until, stuck } = await world(t)
  stuck.push(1)
  connect('one')
  connect('two')
  await until(() => served.length === 2)
  assert.deepEqual(
    served.map(({ worker }) => worker),
    [0, 0],
  )
})

test('one that has not the pod, or drains it, gives the connection back, also to one that drains', async (t) => {
  const { served, connect, until, pods, counts, waiting } = await world(t)
  for (const [first, second] of [
    ['running', 'gone'],
    ['draining', 'draining'],
  ] as const) {
    ;[pods[0], pods[1]] = [first, second]
    const before = served.length
    connect('one')
    connect('two')
    await until(() => served.length === before + 2)
    assert.deepEqual(
      served.slice(before).map(({ worker }) => worker),
      [0, 0],
    )
    await Promise.all(waiting)
    assert.deepEqual([...counts], [before + 2, 0])
  }
  for (const { socket } of served) assert.match(await firstBytes(socket), /^(one|two)$/)
})

test('one that nobody has the pod for any more is closed, with every descriptor', async (t) => {
  const { connect, served, until, pods, counts, waiting, hooks } = await world(t)
  connect('stays')
  await until(() => served.length === 1)
  const before = readdirSync('/proc/self/fd').length
  // The pod ends while the connection is on its way.
  hooks.placed = () => pods.fill('gone')
  const client = connect('late')
  await new Promise((resolve) => client.once('close', resolve))
  await waiting[0]
  assert.deepEqual([...counts], [1, 0])
  assert.equal(readdirSync('/proc/self/fd').length, before)
})
