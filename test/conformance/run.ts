// Finds the suites and their adapters and runs every case.
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ConformanceCase, ListCases } from './adapter.ts'

export interface CaseResult {
  readonly suite: string
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'pending'
  /** The difference, or why the case is pending. */
  readonly detail?: string
}

/** The folder with the suites: CONFORMANCE_DIR, or the one beside the checkout. */
export function suitesDir(): string {
  return resolve(process.env.CONFORMANCE_DIR ?? join(import.meta.dirname, '../../../shared/conformance'))
}

/** Suites that have both data and an adapter, in alphabetical order. */
export function suitesWithAdapter(): string[] {
  if (!existsSync(suitesDir())) return []
  return readdirSync(suitesDir()).filter((suite) => adapterPath(suite) !== undefined)
}

export function adapterPath(suite: string): string | undefined {
  const path = join(import.meta.dirname, `${suite}.ts`)
  return existsSync(path) ? path : undefined
}

export async function listCases(suite: string): Promise<readonly ConformanceCase[]> {
  const path = adapterPath(suite)
  if (path === undefined) throw new Error(`suite ${suite} has no adapter: expected test/conformance/${suite}.ts`)
  const dir = join(suitesDir(), suite)
  if (!existsSync(dir)) throw new Error(`suite ${suite} has no data: expected the folder ${dir}`)
  const { cases } = (await import(pathToFileURL(path).href)) as { cases: ListCases }
  const found = await cases(dir)
  if (found.length === 0) throw new Error(`suite ${suite}: no case found in ${dir}`)
  return found
}

export async function runCase(suite: string, conformanceCase: ConformanceCase): Promise<CaseResult> {
  const { name, pending } = conformanceCase
  if (pending !== undefined) return { suite, name, outcome: 'pending', detail: pending }
  try {
    await conformanceCase.run()
    return { suite, name, outcome: 'passed' }
  } catch (error) {
    return { suite, name, outcome: 'failed', detail: error instanceof Error ? error.message : String(error) }
  }
}
