// Fields that are written down without a value: for Kubernetes a field that is null is not there.

/** Maps of texts, where Kubernetes reads null as the empty text: left out of a selector, it would select more. */
const textMaps = new Set(['labels', 'matchLabels', 'selector', 'annotations'])

/** The object without the fields that are null, or itself where there are none. Elements of lists stay. */
export function withoutNulls<T>(value: T): T {
  return pruned(value, false) as T
}

function pruned(value: unknown, isTextMap: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const elements = value.map((one) => pruned(one, false))
    return elements.some((one, at) => one !== value[at]) ? elements : value
  }
  let changed = false
  const fields: [string, unknown][] = []
  for (const [name, field] of Object.entries(value)) {
    if (field === null) {
      changed = true
      if (isTextMap) fields.push([name, ''])
      continue
    }
    const next = pruned(field, !isTextMap && textMaps.has(name) && !isLabelSelector(field))
    changed ||= next !== field
    fields.push([name, next])
  }
  return changed ? Object.fromEntries(fields) : value
}

/** A `selector` is a map of labels in some kinds, and such an object in others. */
function isLabelSelector(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('matchLabels' in value || 'matchExpressions' in value)
}
