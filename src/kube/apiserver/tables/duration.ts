// Ages as kubectl shows them: `5s`, `3m20s`, `4h`, `2d5h`, `11d`, `2y30d`.

/** The time since an RFC 3339 timestamp. */
export function age(timestamp: string | undefined, now: Date): string {
  const then = Date.parse(timestamp ?? '')
  return Number.isNaN(then) ? '<unknown>' : shortDuration(now.getTime() - then)
}

export function shortDuration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (days < 8) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  if (years < 8) return pair(years, 'y', days % 365, 'd')
  return `${years}y`
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`
}
