// The outcome of a check, as data and as text.

export interface CheckResult {
  /** What has to hold: `a plaintext client is refused where mutual TLS is required`. */
  readonly name: string
  readonly passed: boolean
  /** What was seen. */
  readonly detail: string
}

/** One line a result. */
export function resultText({ name, passed, detail }: CheckResult): string {
  return `${passed ? 'ok  ' : 'FAIL'}  ${name}${detail === '' ? '' : ` (${detail})`}`
}

export class CheckError extends Error {
  readonly code = 'CHECK_FAILED'
}

/** Repeats an observation until it holds. Rejects with the last complaint. */
export async function eventually<T>(
  limitMs: number,
  observe: () => Promise<T | { readonly not: string }>,
  intervalMs = 50,
): Promise<{ readonly value: T; readonly afterMs: number }> {
  const start = performance.now()
  for (;;) {
    const seen = await observe()
    const afterMs = Math.round(performance.now() - start)
    if (!isComplaint(seen)) return { value: seen, afterMs }
    if (afterMs > limitMs) throw new CheckError(`${seen.not} (for ${Math.round(afterMs / 1000)} s)`)
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
  }
}

function isComplaint(seen: unknown): seen is { readonly not: string } {
  return typeof seen === 'object' && seen !== null && typeof (seen as { not?: unknown }).not === 'string'
}
