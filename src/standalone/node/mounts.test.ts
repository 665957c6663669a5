import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { type HostFiles, mountScript, quote, resolveLinks } from './mounts.ts'

const tree: Readonly<Record<string, string>> = {
  '/etc': 'directory',
  '/etc/hosts': 'file',
  '/etc/resolv.conf': '->../run/resolved/stub.conf',
  '/run': 'directory',
  '/run/lock': 'directory',
  '/run/resolved': 'directory',
  '/run/resolved/stub.conf': 'file',
  '/var': 'directory',
  '/var/run': '->/run',
  '/bin': '->usr/bin',
  '/usr': 'directory',
  '/vol': 'directory',
  '/volfile': 'file',
}

const files: HostFiles = {
  kind: (path) => {
    const kind = path === '/' ? 'directory' : tree[path]
    if (kind === undefined) return 'absent'
    return kind.startsWith('->') ? 'link' : (kind as 'directory' | 'file')
  },
  link: (path) => (tree[path] ?? '').slice(2),
  entries: (path) =>
    Object.keys(tree)
      .filter((name) => name.startsWith(path === '/' ? '/' : `${path}/`))
      .map((name) => name.slice(path === '/' ? 1 : path.length + 1))
      .filter((name) => !name.includes('/')),
}

const script = (...mounts: [string, string][]) =>
  mountScript(
    mounts.map(([source, target]) => ({ source, target, readOnly: false })),
    files,
    '/r',
  )

test('the root is a mirror of the host: folders are bound, links are copied', () => {
  const lines = script()
  assert.ok(lines.includes(`mkdir "/r"'/etc' && bind_if_there --rbind '/etc' "/r"'/etc'`))
  assert.ok(lines.includes(`ln -s 'usr/bin' "/r"'/bin'`))
  assert.ok(!lines.some((line) => line.includes(`"/r"'/run/lock'`)), 'only what needs it is mirrored deeper')
})

test('a mount over something that exists is bound there', () => {
  assert.ok(script(['/volfile', '/etc/hosts']).includes(`mount --bind '/volfile' "/r"'/etc/hosts'`))
})

test('a mount point behind links is the one the container would follow to', () => {
  assert.equal(resolveLinks('/etc/resolv.conf', files), '/run/resolved/stub.conf')
  assert.equal(resolveLinks('/var/run/secrets/x', files), '/run/secrets/x')
  assert.ok(script(['/volfile', '/etc/resolv.conf']).includes(`mount --bind '/volfile' "/r"'/run/resolved/stub.conf'`))
})

test('a missing mount point makes a mirror of the folder above, with its content', () => {
  const lines = script(['/vol', '/var/run/secrets/token'])
  const mirror = lines.findIndex((line) => line.startsWith('mount -t tmpfs') && line.endsWith(`"/r"'/run'`))
  const content = lines.indexOf(`mkdir "/r"'/run/lock' && bind_if_there --rbind '/run/lock' "/r"'/run/lock'`)
  const made = lines.indexOf(`mkdir "/r"'/run/secrets/token'`)
  const bound = lines.indexOf(`mount --bind '/vol' "/r"'/run/secrets/token'`)
  assert.ok(mirror > 0 && mirror < content && content < made && made < bound)
})

test('a missing folder of the root needs no second mirror', () => {
  const lines = script(['/vol', '/data/deep'])
  assert.equal(lines.filter((line) => line.startsWith('mount -t tmpfs')).length, 1)
  assert.ok(lines.includes(`mkdir "/r"'/data'`) && lines.includes(`mkdir "/r"'/data/deep'`))
})

test('a mount inside another volume is made in that volume, after it', () => {
  const lines = script(['/vol', '/data/sub'], ['/vol', '/data'])
  assert.ok(lines.indexOf(`mount --bind '/vol' "/r"'/data'`) < lines.indexOf(`mkdir -p "/r"'/data/sub'`))
})

test('read-only mounts are bound again without the right to write', () => {
  const lines = mountScript([{ source: '/vol', target: '/data', readOnly: true }], files, '/r')
  assert.ok(lines.includes(`mount -o remount,bind,ro "/r"'/data'`))
})

test('words survive the shell', () => {
  assert.equal(quote("it's $HOME"), `'it'\\''s $HOME'`)
})

test('what is gone when it is to be mounted is left out, what cannot be mounted is a failure', () => {
  const [bindIfThere = ''] = mountScript([], files, '/r')
  const run = (source: string) =>
    spawnSync('sh', ['-ec', `mount() { return 1; }\n${bindIfThere}\nbind_if_there --rbind ${source} /target`]).status
  assert.equal(run('/nothing/of/this/name'), 0)
  assert.notEqual(run('/'), 0)
})
