// Durations as the control plane prints them in its messages.

/** `3h0m0s`, `1m30s`, `45s`: hours and minutes only when there are any, in whole seconds. */
export function formatGoDuration(totalSeconds: number): string {
  const whole = Math.round(totalSeconds)
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`
}
