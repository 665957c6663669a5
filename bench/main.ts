// npm run bench [name…]: runs benchmarks (all when none is named), each in a process of its own, and prints their tables.
import { fork } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

type Row = Record<string, number | string>

const fileOf = (name: string): string => join(import.meta.dirname, `${name}.ts`)

/** Benchmarks are the files beside this one that export `run`. */
function benchmarks(): string[] {
  return globSync('*.ts', { cwd: import.meta.dirname })
    .map((file) => file.replace(/\.ts$/, ''))
    .filter((name) => /^export async function run\(/m.test(readFileSync(fileOf(name), 'utf8')))
    .sort()
}

function rowsOf(name: string): Promise<readonly Row[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>()
  const child = fork(import.meta.filename, [], { env: { ...process.env, BENCHMARK: name } })
  child.once('message', (rows) => resolve(rows as readonly Row[]))
  child.once('exit', (code, signal) => reject(new Error(`the benchmark ended (${signal ?? code})`)))
  child.once('error', reject)
  return promise
}

const terminalWidth = 120

/** A line a row; of rows too wide for a terminal, a line a column. */
function table(rows: readonly Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((column) => column !== 'benchmark')
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))]
  const upright = aligned(cells)
  const isWide = upright.split('\n').some((line) => line.length > terminalWidth)
  return isWide ? aligned(columns.map((_, index) => cells.map((row) => row[index] ?? ''))) : upright
}

function aligned(cells: readonly (readonly string[])[]): string {
  const widths = (cells[0] ?? []).map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

async function runNamed(named: readonly string[]): Promise<void> {
  const known = benchmarks()
  const unknown = named.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    process.stderr.write(`no benchmark ${unknown.join(', ')}: there are ${known.join(', ')}\n`)
    process.exitCode = 1
    return
  }
  for (const name of named.length > 0 ? named : known) {
    const since = performance.now()
    try {
      const rows = await rowsOf(name)
      const seconds = ((performance.now() - since) / 1000).toFixed(0)
      process.stdout.write(`${name} (${seconds} s)\n${table(rows)}\n\n`)
    } catch (error) {
      process.stderr.write(`${name}: ${error instanceof Error ? error.message : String(error)}\n`)
      process.exitCode = 1
    }
  }
}

const own = process.env.BENCHMARK
if (own === undefined) {
  await runNamed(process.argv.slice(2))
} else {
  const { run } = (await import(fileOf(own))) as { run: () => Promise<readonly Row[]> }
  const rows = await run()
  process.send?.(rows, () => process.disconnect())
}
