// npm run build: JavaScript and type declarations in dist/, for publishing.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules/.bin', name)

rmSync(join(root, 'dist'), { recursive: true, force: true })
for (const project of ['tsconfig.build.json', 'tsconfig.samples.json']) {
  const { status, error } = spawnSync(bin('tsc'), ['--project', join(root, project)], { stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}
// Generated code is JavaScript already.
for (const generated of ['proto/gen', 'api/gen']) {
  cpSync(join(root, 'src', generated), join(root, 'dist', generated), { recursive: true })
}
