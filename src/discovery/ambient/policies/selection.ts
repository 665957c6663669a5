// Which workloads a policy selects.

interface Selecting {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } | null
}

/**
 * The labels of a policy that selects workloads; undefined for one that is for all there are. An empty selector selects all, as none
 * does, and so does one that cannot be read: a policy must not get lost.
 */
export function selectedLabels(spec: Selecting | null | undefined): Readonly<Record<string, string>> | undefined {
  const labels = spec?.selector?.matchLabels
  return labels === undefined || !isReadable(labels) || Object.keys(labels).length === 0 ? undefined : labels
}

/** Whether the selector of a policy, if it has one, is of the right shape. */
export function hasReadableSelector(spec: Selecting | null | undefined): boolean {
  const selector: unknown = spec?.selector ?? {}
  if (!isRecord(selector)) return false
  return isReadable(selector.matchLabels ?? {})
}

function isReadable(labels: unknown): boolean {
  return isRecord(labels) && Object.values(labels).every((value) => typeof value === 'string')
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
