// Durations as they are written in settings: 1h30m, 100ms.

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** The milliseconds of a duration, undefined when it isn't one. */
export function parseGoDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = /^([+-]?)((?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+)$/.exec(text)
  if (match === null) return undefined
  let ms = 0
  for (const [, amount = '', unit = ''] of (match[2] ?? '').matchAll(/(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g)) {
    ms += Number(amount) * (unitMs[unit] ?? 0)
  }
  return match[1] === '-' ? -ms : ms
}
