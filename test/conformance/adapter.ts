// What a conformance adapter gives the runner.

/** One case of a suite, ready to run against the real code. */
export interface ConformanceCase {
  readonly name: string
  /** Why the case is not run yet; such cases are counted apart and never pass. */
  readonly pending?: string
  /** Rejects (best with an AssertionError that shows the difference) when the case fails. */
  readonly run: () => Promise<void> | void
}

/** Exported by `test/conformance/<suite>.ts` as `cases`: reads the suite's folder and lists its cases. */
export type ListCases = (suiteDir: string) => Promise<readonly ConformanceCase[]> | readonly ConformanceCase[]
