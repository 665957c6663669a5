import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { run, tryRun } from '../run.ts'
import { allocateAddress, releaseAddress } from './addresses.ts'
import { runPtpPlugin } from './plugin.ts'

const directory = await mkdtemp(join(tmpdir(), 'h-ptp-'))
after(() => rm(directory, { recursive: true }))
const skip = process.getuid?.() === 0 ? false : 'needs root'

test('addresses are given once, kept by their owner, and free again after release', async () => {
  const place = join(directory, 'small')
  assert.equal(await allocateAddress(place, '10.9.0.0/29', 'a'), '10.9.0.2')
  assert.equal(await allocateAddress(place, '10.9.0.0/29', 'a'), '10.9.0.2')
  const rest = await Promise.all(['b', 'c', 'd', 'e'].map((owner) => allocateAddress(place, '10.9.0.0/29', owner)))
  assert.equal(new Set(rest).size, 4)
  await assert.rejects(allocateAddress(place, '10.9.0.0/29', 'f'), /are taken/)
  await releaseAddress(place, 'a')
  assert.equal(await allocateAddress(place, '10.9.0.0/29', 'f'), '10.9.0.2')
})

test('a pod is reached from its node and back', { skip }, async () => {
  const name = `h${randomBytes(3).toString('hex')}`
  const config = JSON.stringify({
    cniVersion: '1.0.0',
    name: 'net',
    ipam: { dataDir: directory, ranges: [[{ subnet: '198.18.77.0/24' }]] },
  })
  const env = (command: string) => ({
    CNI_COMMAND: command,
    CNI_CONTAINERID: name,
    CNI_NETNS: `/run/netns/${name}`,
    CNI_IFNAME: 'eth0',
  })
  await run(['ip', 'netns', 'add', name])
  try {
    const added = await runPtpPlugin(env('ADD'), config)
    assert.equal(added.exitCode, 0, added.output)
    const [ip] = JSON.parse(added.output).ips
    assert.deepEqual(ip, { interface: 1, address: '198.18.77.2/24', gateway: '198.18.77.1' })
    const routes = await run(['ip', '-n', name, 'route'])
    assert.match(routes, /default via 198\.18\.77\.1/)
    assert.match(await run(['ip', 'route', 'get', '198.18.77.2']), /dev veth/)
    assert.equal((await runPtpPlugin(env('CHECK'), config)).exitCode, 0)
    assert.equal((await runPtpPlugin(env('DEL'), config)).exitCode, 0)
    assert.equal((await runPtpPlugin(env('DEL'), config)).exitCode, 0, 'DEL may be repeated')
    assert.doesNotMatch(await run(['ip', 'route']), /198\.18\.77\./)
  } finally {
    await tryRun(['ip', 'netns', 'delete', name])
  }
})

test('a call that cannot be carried out is an error object', async () => {
  const { exitCode, output } = await runPtpPlugin({ CNI_COMMAND: 'ADD' }, '{"cniVersion":"1.0.0"}')
  assert.equal(exitCode, 1)
  assert.equal(JSON.parse(output).code, 999)
})
