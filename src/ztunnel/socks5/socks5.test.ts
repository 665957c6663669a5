import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { type TestContext, test } from 'node:test'
import packet from 'dns-packet'
import fc from 'fast-check'
import { encodeQuestion, firstAddress, type Handshake, handshake, readGreeting, readRequest } from './index.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

test('a greeting must offer to go without authentication', () => {
  assert.deepEqual(readGreeting(hex('05 01 00')), { kind: 'message', value: 'no-authentication', length: 3 })
  assert.deepEqual(readGreeting(hex('05 02 02 00 aa')), { kind: 'message', value: 'no-authentication', length: 4 })
  assert.equal(readGreeting(hex('05 02 02')).kind, 'incomplete')
  assert.equal(readGreeting(hex('05 01 02')).kind, 'violation')
  assert.equal(readGreeting(hex('04 01 00')).kind, 'violation')
  assert.equal(readGreeting(hex('05 00')).kind, 'violation')
})

test('a request names an address of either family or a host', () => {
  const targetOf = (text: string) => {
    const reading = readRequest(hex(text))
    return reading.kind === 'message' ? reading.value : reading.kind
  }
  const address = (ip: string, port: number) => ({ kind: 'address', address: { ip, port } })
  assert.deepEqual(targetOf('05 01 00 01 0a010203 0050'), address('10.1.2.3', 80))
  assert.deepEqual(targetOf('05 01 00 04 fd000000000000000000000000000001 01bb'), address('fd00::1', 443))
  assert.deepEqual(targetOf('05 01 00 04 00000000000000000000ffff0a010203 0050'), address('10.1.2.3', 80))
  const name = Buffer.from('cart.shop').toString('hex')
  assert.deepEqual(targetOf(`05 01 00 03 09 ${name} 0050`), { kind: 'hostname', hostname: 'cart.shop', port: 80 })
  assert.equal(targetOf('05 01 00 01 0a0102'), 'incomplete')
  assert.equal(targetOf('05 02 00 01 0a010203 0050'), 'violation')
  assert.equal(targetOf('05 01 01 01 0a010203 0050'), 'violation')
  assert.equal(targetOf('05 01 00 02 0a010203 0050'), 'violation')
  assert.equal(targetOf('05 01 00 03 00 0050'), 'violation')
  assert.equal(targetOf('05 01 00 03 03 612f62 0050'), 'violation')
})

test('no bytes make a reader throw or read past their end', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ maxLength: 300 }).map((rest) => Uint8Array.of(5, 1, 0, ...rest)),
  )
  fc.assert(
    fc.property(bytes, (input) => {
      for (const read of [readGreeting, readRequest]) {
        const reading = read(input)
        if (reading.kind === 'message') assert.ok(reading.length <= input.length)
      }
    }),
    { numRuns: 2000 },
  )
})

test('a name is asked of the DNS proxy and its first address taken', () => {
  const asked = packet.decode(encodeQuestion('cart.shop.', 6))
  assert.deepEqual(
    asked.questions?.map(({ name, type }) => [name, type]),
    [['cart.shop', 'AAAA']],
  )
  const answer = packet.encode({
    type: 'response',
    answers: [
      { type: 'CNAME', name: 'a', data: 'b' },
      { type: 'A', name: 'b', data: '10.0.0.1' },
      { type: 'A', name: 'b', data: '10.0.0.2' },
    ],
  })
  assert.equal(firstAddress(answer, 4), '10.0.0.1')
  assert.equal(firstAddress(answer, 6), undefined)
  assert.equal(firstAddress(null, 4), undefined)
  assert.equal(firstAddress(answer.subarray(0, 20), 4), undefined)
})

async function meet(t: TestContext, resolve = async (): Promise<string | undefined> => undefined) {
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [net.Socket]
  t.after(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  socket.on('error', () => undefined)
  client.on('error', () => undefined)
  const outcome: Promise<Handshake> = handshake(socket, { resolve, timeoutMs: 200 })
  return { client, socket, outcome }
}

test('the client hears of success, and what it sent early is kept for the connection', async (t) => {
  const { client, socket, outcome } = await meet(t)
  client.write(Buffer.concat([hex('05 01 00'), hex('05 01 00 01 0a010203 0050'), Buffer.from('early')]))
  assert.deepEqual(await outcome, { kind: 'target', address: { ip: '10.1.2.3', port: 80 } })
  const chunks: Buffer[] = []
  client.on('data', (chunk) => chunks.push(chunk))
  while (Buffer.concat(chunks).length < 12) await once(client, 'data')
  assert.deepEqual(Buffer.concat(chunks), hex('05 00 05 00 00 01 00000000 0000'))
  socket.resume()
  assert.equal(String((await once(socket, 'data'))[0]), 'early')
})

test('a message may come byte by byte', async (t) => {
  const { client, outcome } = await meet(t, async () => '10.9.9.9')
  client.setNoDelay(true)
  const name = Buffer.from('web').toString('hex')
  for (const byte of [...hex('05 01 00'), ...hex(`05 01 00 03 03 ${name} 0050`)]) {
    client.write(Uint8Array.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(await outcome, { kind: 'target', address: { ip: '10.9.9.9', port: 80 } })
})

for (const [what, sent, reply] of [
  ['another version', '04 01 00', '05 ff'],
  ['another command', '05 01 00 05 02 00 01 0a010203 0050', '05 00 05 07 00 01 00000000 0000'],
  ['a name without an address', '05 01 00 05 01 00 03 01 61 0050', '05 00 05 04 00 01 00000000 0000'],
] as const) {
  test(`${what} is answered and the connection closed`, async (t) => {
    const { client, outcome } = await meet(t)
    client.write(hex(sent))
    const chunks: Buffer[] = []
    for await (const chunk of client) chunks.push(chunk)
    assert.deepEqual(Buffer.concat(chunks), hex(reply))
    assert.equal((await outcome).kind, 'failed')
  })
}

test('a client that says nothing is given up', async (t) => {
  const { outcome } = await meet(t)
  assert.deepEqual(await outcome, { kind: 'failed', error: 'socks5: the handshake took too long' })
})

test('a client that leaves is given up', async (t) => {
  const { client, outcome } = await meet(t)
  client.end(hex('05'))
  assert.deepEqual(await outcome, { kind: 'failed', error: 'socks5: the client left during the handshake' })
})
