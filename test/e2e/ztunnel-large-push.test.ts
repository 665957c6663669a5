// Connections of a running pair of proxies while both are told a hundred megabytes of mesh.
import assert from 'node:assert/strict'
import type net from 'node:net'
import { after, before, suite, test } from 'node:test'
import { ipToBytes } from '../../src/ztunnel/state/index.ts'
import { createEchoLab, echoTo } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { canRunLab, type MeshLab } from '../support/mesh-lab.ts'

const pushBytes = 100e6
const workloadBytes = 25_000
const connections = 4
const blockBytes = 16 * 1024
/** Sent and not yet back, for each connection. */
const mostUnderWay = 2

interface Stream {
  readonly socket: net.Socket
  /** Blocks that came back whole and in order. */
  readonly returned: () => number
  /** Sends no more; resolves with what was sent and what came back when the other side has ended too. */
  finish(): Promise<{ readonly sent: number; readonly returned: number }>
}

/** No two places of any stream look the same. */
function block(stream: number, index: number): Buffer {
  const words = new Uint32Array(blockBytes / 4)
  for (let word = 0; word < words.length; word += 1) words[word] = index * words.length + word
  words.set([stream])
  return Buffer.from(words.buffer)
}

async function openStream(lab: MeshLab, number: number): Promise<Stream> {
  const socket = await lab.connect('client', echoTo)
  const ended = Promise.withResolvers<void>()
  let sent = 0
  let returned = 0
  let finishing = false
  let rest = Buffer.alloc(0)
  const send = () => {
    while (!finishing && sent - returned < mostUnderWay) {
      socket.write(block(number, sent))
      sent += 1
    }
  }
  socket.on('error', ended.reject)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= blockBytes) {
      const came = rest.subarray(0, blockBytes)
      rest = rest.subarray(blockBytes)
      if (!came.equals(block(number, returned))) ended.reject(new Error(`block ${returned} of ${number} is another`))
      returned += 1
    }
    send()
  })
  socket.on('end', () => {
    if (rest.length > 0) ended.reject(new Error(`${number} ended within a block`))
    else ended.resolve()
  })
  ended.promise.catch(() => undefined)
  socket.resume()
  send()
  return {
    socket,
    returned: () => returned,
    async finish() {
      finishing = true
      socket.end()
      await ended.promise
      return { sent, returned }
    },
  }
}

suite('a push of a hundred megabytes', { skip: canRunLab, timeout: 60_000 }, () => {
  let lab: MeshLab
  before(async () => {
    lab = await createEchoLab()
    await Promise.all(['n1', 'n2'].map((node) => lab.startProxy(node, { ZTUNNEL_WORKER_THREADS: '1' })))
  })
  after(() => lab?.[Symbol.asyncDispose]())

  const metric = async (node: string, series: string): Promise<number> => {
    const text = await lab.run(node, 'curl', '-sS', '-m', '9', 'http://127.0.0.1:15020/metrics')
    const line = text.split('\n').find((one) => one.startsWith(`${series} `))
    return Number(line?.split(' ').at(-1) ?? 0)
  }
  /** What the mesh takes in the memory of both proxies, at least. */
  const meshBytes = async (): Promise<number> =>
    Math.min(...(await Promise.all(['n1', 'n2'].map((node) => metric(node, 'lateen_mesh_memory_bytes{kind="used"}')))))

  test('no connection ends, no byte is lost or in another place, and bytes go on meanwhile', async () => {
    const streams = await Promise.all(Array.from({ length: connections }, (_, number) => openStream(lab, number)))
    await eventually(() => streams.every(({ returned }) => returned() > mostUnderWay), 'bytes of every connection')
    assert.ok((await meshBytes()) < pushBytes / 10)

    for (let index = 0; index < pushBytes / workloadBytes; index += 1) {
      lab.controlPlane.setWorkload({
        uid: `c1//Pod/far/w${index}`,
        name: `w${index}`,
        namespace: 'far',
        node: 'far',
        addresses: [ipToBytes(`10.99.${index >> 8}.${index & 255}`)],
        canonicalRevision: `${index}`.repeat(workloadBytes).slice(0, workloadBytes),
      })
    }
    const before = streams.map(({ returned }) => returned())
    await eventually(async () => (await meshBytes()) > pushBytes, 'the mesh at both proxies', 40_000)
    for (const [number, { returned }] of streams.entries()) {
      assert.ok(returned() > (before[number] ?? 0), `nothing of ${number} came back during the push`)
    }

    for (const { sent, returned } of await Promise.all(streams.map((stream) => stream.finish()))) {
      assert.equal(returned, sent)
    }
  })
})
