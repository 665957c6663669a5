// The suite's data, and the running of a table: every row is evaluated and compared with its expectation.
import assert from 'node:assert/strict'

export type Row = Readonly<Record<string, unknown>> & { readonly name: string }
export type Input = Readonly<Record<string, unknown>> & { readonly kind: string; readonly cases?: readonly Row[] }
export type Expected = Readonly<Record<string, unknown>> & {
  readonly results?: Readonly<Record<string, unknown>>
  readonly tolerance?: string
}

/** Checks one row; rejects when the outcome is not the expected one. */
export type RunTable = (row: Row, expected: unknown, input: Input, all: Expected) => Promise<void> | void

export async function runTable(input: Input, expected: Expected, check: RunTable): Promise<void> {
  const failures: string[] = []
  for (const row of input.cases ?? []) {
    assert.ok(expected.results !== undefined && row.name in expected.results, `no expectation for ${row.name}`)
    try {
      await check(row, expected.results[row.name], input, expected)
    } catch (error) {
      failures.push(`${row.name}: ${error instanceof Error ? error.message : error}`)
    }
  }
  assert.ok((input.cases ?? []).length > 0, 'the table is empty')
  assert.deepEqual(failures, [])
}

/** The outcome of a function as tables write it: its value, or `{ error: message }`. */
export async function outcomeOf<T>(evaluate: () => Promise<T> | T): Promise<T | { readonly error: string }> {
  try {
    return await evaluate()
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

/** Compares with `error` (any error), `{ error: message }`, `{ errorPrefix }` or a value. */
export function assertOutcome(actual: unknown, expected: unknown): void {
  const isError = typeof actual === 'object' && actual !== null && 'error' in actual
  if (expected === 'error') assert.ok(isError, `expected an error, got ${JSON.stringify(actual)}`)
  else if (typeof expected === 'object' && expected !== null && 'errorPrefix' in expected) {
    assert.ok(isError && String(actual.error).startsWith(String(expected.errorPrefix)), JSON.stringify(actual))
  } else assert.deepEqual(actual, expected)
}

const unitSeconds: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1, ms: 1e-3 }

/** Seconds of a duration such as `-1h30m`, or of a number of them. */
export function secondsOf(duration: string): number {
  const sign = duration.startsWith('-') ? -1 : 1
  if (/^-?\d+$/.test(duration)) return Number(duration)
  return [...duration.matchAll(/([\d.]+)(ms|[dhms])/g)].reduce(
    (sum, [, amount, unit]) => sum + sign * Number(amount) * (unitSeconds[unit ?? ''] ?? Number.NaN),
    0,
  )
}

export function list(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}

export function text(value: unknown): string {
  return value === undefined || value === null ? '' : String(value)
}
