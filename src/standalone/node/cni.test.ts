import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { cniAdd, cniDelete, loadNetwork, parseNetwork } from './cni.ts'

const directory = await mkdtemp(join(tmpdir(), 'h-cni-'))
after(() => rm(directory, { recursive: true }))

/** A plugin that writes down how it was called and prints the given answer. */
async function plugin(name: string, answer: string, code = 0): Promise<void> {
  const file = join(directory, name)
  const script = `#!/bin/sh
{ echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS"; cat; echo; } >> '${directory}/calls'
printf '%s' '${answer}'
exit ${code}
`
  await writeFile(file, script)
  await chmod(file, 0o755)
}

const call = {
  containerId: 'id',
  networkNamespace: '/run/netns/x',
  interfaceName: 'eth0',
  args: { IgnoreUnknown: '1', K8S_POD_NAME: 'p' },
  path: ['/nowhere', directory],
}
const network = {
  name: 'net',
  cniVersion: '1.0.0',
  disableCheck: false,
  plugins: [{ type: 'first', key: 1 }, { type: 'second' }],
}
const result = { cniVersion: '1.0.0', ips: [{ address: '10.244.0.2/24' }] }

async function callsOf(action: () => Promise<unknown>): Promise<string[]> {
  await writeFile(join(directory, 'calls'), '')
  await action()
  return (await readFile(join(directory, 'calls'), 'utf8')).trim().split('\n')
}

test('ADD runs the plugins in order, each with the result of the one before', async () => {
  await plugin('first', JSON.stringify(result))
  await plugin('second', JSON.stringify({ ...result, dns: {} }))
  const lines = await callsOf(async () => assert.deepEqual(await cniAdd(network, call), { ...result, dns: {} }))
  assert.equal(lines[0], 'ADD id /run/netns/x eth0 IgnoreUnknown=1;K8S_POD_NAME=p')
  assert.deepEqual(JSON.parse(lines[1] ?? ''), { type: 'first', key: 1, name: 'net', cniVersion: '1.0.0' })
  assert.deepEqual(JSON.parse(lines[3] ?? '').prevResult, result)
})

test('DEL runs them in reverse order with the result of ADD', async () => {
  const lines = await callsOf(() => cniDelete(network, call, result))
  assert.deepEqual([JSON.parse(lines[1] ?? '').type, JSON.parse(lines[3] ?? '').type], ['second', 'first'])
  assert.deepEqual(JSON.parse(lines[3] ?? '').prevResult, result)
})

test('DEL goes on after a failure and reports it', async () => {
  await plugin('second', JSON.stringify({ code: 7, msg: 'no' }), 1)
  const lines = await callsOf(() => assert.rejects(cniDelete(network, call, result), /"second" failed: no/))
  assert.equal(lines.length, 4)
})

test('a plugin’s error is the error of ADD, with its code', async () => {
  await assert.rejects(cniAdd(network, call), { code: 7 })
})

test('a plugin that is not there is named', async () => {
  await assert.rejects(cniAdd({ ...network, plugins: [{ type: 'none' }] }, call), /failed to find plugin "none"/)
})

test('the first usable configuration in name order counts', async () => {
  const net = await mkdtemp(join(directory, 'net-'))
  assert.equal(await loadNetwork(net), undefined)
  await writeFile(join(net, '05-broken.conflist'), '{')
  await writeFile(join(net, '20-b.conf'), JSON.stringify({ name: 'b', type: 'first' }))
  await writeFile(
    join(net, '10-a.conflist'),
    JSON.stringify({ name: 'a', cniVersion: '1.0.0', plugins: [{ type: 'x' }] }),
  )
  assert.equal((await loadNetwork(net))?.name, 'a')
})

test('what is no configuration is passed over', () => {
  for (const text of ['{}', '{"name":"a"}', '{"name":"a","plugins":[]}', '{"name":"a","plugins":[{}]}']) {
    assert.equal(parseNetwork(text), undefined, text)
  }
})
