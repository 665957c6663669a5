// Loads the programs into real network namespaces.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ambientDefaults } from './ambient.ts'
import { runTool } from './exec.ts'
import { createRedirector } from './redirector.ts'

const root = process.getuid?.() === 0
const skip = root ? false : 'needs root: makes network namespaces'
const plain = { ingressMode: false, virtualInterfaces: [], dnsProxy: 'unset' } as const

/** A network namespace that is gone when the test ends, and reading it. */
function namespace(t: { after: (f: () => void) => void }): { path: string; read: (...command: string[]) => string } {
  const name = `ltr-${randomBytes(4).toString('hex')}`
  execFileSync('ip', ['netns', 'add', name])
  t.after(() => void execFileSync('ip', ['netns', 'del', name]))
  execFileSync('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
  return {
    path: `/run/netns/${name}`,
    read: (...command) => execFileSync('ip', ['netns', 'exec', name, ...command], { encoding: 'utf8' }),
  }
}

for (const flavour of ['iptables-legacy', 'iptables-nft', 'nftables'] as const) {
  const backend = flavour === 'nftables' ? 'nftables' : 'iptables'
  const forced = flavour.startsWith('iptables-') ? flavour.slice('iptables-'.length) : undefined
  const iptables = `iptables-${forced}`
  const dump = (ns: ReturnType<typeof namespace>): string =>
    backend === 'iptables'
      ? ns.read(`${iptables}-save`) + ns.read(`ip6tables-${forced}-save`)
      : ns.read('nft', '--stateless', 'list', 'ruleset')
  const rulesOf = (text: string): string => text.replace(/^#.*\n/gm, '').replace(/\[\d+:\d+\]/g, '')

  test(`${flavour}: a pod's program is in force, applying it again changes nothing, removing it leaves nothing`, {
    skip,
  }, async (t) => {
    const ns = namespace(t)
    const redirector = createRedirector({ ...ambientDefaults, backend }, forced)
    const before = rulesOf(dump(ns))
    await redirector.programPod(ns.path, plain)
    const applied = rulesOf(dump(ns))
    for (const port of ['15001', '15006', '15053']) assert.match(applied, new RegExp(port))
    assert.match(ns.read('ip', 'rule'), /fwmark 0x111\/0xfff lookup 100/)
    await redirector.programPod(ns.path, plain)
    assert.equal(rulesOf(dump(ns)), applied)
    await redirector.unprogramPod(ns.path)
    assert.doesNotMatch(dump(ns), /ISTIO|istio/)
    assert.doesNotMatch(ns.read('ip', 'rule'), /0x111/)
    assert.equal(before.includes('ISTIO'), false)
  })

  test(`${flavour}: rules that stay although they were to be removed are told`, { skip }, async (t) => {
    const ns = namespace(t)
    const settings = { ...ambientDefaults, backend } as const
    await createRedirector(settings, forced).programPod(ns.path, plain)
    const hindered = createRedirector(settings, forced, undefined, (command, args, options) =>
      args.includes('-X') || args.includes('-f')
        ? Promise.resolve({ code: 4, stdout: '', stderr: 'Resource temporarily unavailable' })
        : runTool(command, args, options),
    )
    await assert.rejects(hindered.unprogramPod(ns.path), { code: 'TOOL_FAILED' })
  })

  test(`${flavour}: a rule deleted by hand comes back, foreign rules stay`, { skip }, async (t) => {
    const ns = namespace(t)
    const redirector = createRedirector({ ...ambientDefaults, backend, enableIpv6: false }, forced)
    await redirector.programPod(ns.path, plain)
    const applied = rulesOf(dump(ns))
    if (backend === 'iptables') {
      ns.read(iptables, '-t', 'nat', '-F', 'ISTIO_OUTPUT')
      ns.read(iptables, '-t', 'nat', '-A', 'OUTPUT', '-d', '192.0.2.1', '-j', 'ACCEPT')
      await redirector.programPod(ns.path, plain)
      assert.match(dump(ns), /192\.0\.2\.1/)
      assert.equal(rulesOf(dump(ns)).replace(/.*192\.0\.2\.1.*\n/, ''), applied)
    } else {
      ns.read('nft', 'flush', 'chain', 'inet', 'istio-ambient-nat', 'istio-output')
      await redirector.programPod(ns.path, plain)
      assert.equal(rulesOf(dump(ns)), applied)
    }
  })

  test(`${flavour}: the node's rules and address set`, { skip }, async (t) => {
    const ns = namespace(t)
    const redirector = createRedirector({ ...ambientDefaults, backend }, forced, ns.path)
    const { probeSet } = redirector
    await redirector.programHost('0')
    await probeSet.add([
      { ip: '10.0.0.1', uid: 'a' },
      { ip: '::ffff:10.0.0.2', uid: 'b' },
      { ip: 'fd00::1', uid: 'b' },
    ])
    await probeSet.add([{ ip: '10.0.0.1', uid: 'c' }])
    await probeSet.remove([{ ip: '10.0.0.1', uid: 'a' }])
    const sorted = async (): Promise<string[]> => (await probeSet.list()).map(({ ip, uid }) => `${ip} ${uid}`).sort()
    assert.deepEqual(await sorted(), ['10.0.0.1 c', '10.0.0.2 b', 'fd00::1 b'])
    await Promise.all([
      probeSet.remove([{ ip: '10.0.0.1', uid: 'c' }]),
      probeSet.add([{ ip: '10.0.0.1', uid: 'd' }]),
      probeSet.remove([{ ip: '10.0.0.1', uid: 'c' }]),
      probeSet.add([{ ip: '10.0.0.1', uid: 'c' }]),
      probeSet.remove([{ ip: 'FD00:0::1', uid: 'b' }]),
      probeSet.add([{ ip: 'FD00:0::1', uid: 'b' }]),
    ])
    assert.deepEqual(await sorted(), ['10.0.0.1 c', '10.0.0.2 b', 'fd00::1 b'], 'an address that is taken over stays')
    await redirector.programHost('0')
    assert.deepEqual(await sorted(), ['10.0.0.1 c', '10.0.0.2 b', 'fd00::1 b'], 'a restart keeps the content')
    await probeSet.sync([{ ip: '10.0.0.2', uid: 'b' }])
    assert.deepEqual(await sorted(), ['10.0.0.2 b'])
    assert.match(dump(ns), /169\.254\.7\.127/)
    await redirector.unprogramHost()
    assert.doesNotMatch(dump(ns), /ISTIO|istio/)
  })
}
