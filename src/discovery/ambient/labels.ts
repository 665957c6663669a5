// Label selection.

/** Whether all of the wanted labels are there. */
export function containsLabels(
  labels: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string>>,
): boolean {
  for (const key of Object.keys(wanted)) if (labels?.[key] !== wanted[key]) return false
  return true
}
