// Fields that are written down without a value: for Kubernetes a field that is null is not there.

/** Maps of texts: a name whose value is null stays, and so meets no selector. */
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
    if (field === null && !isTextMap) {
      changed = true
      continue
    }
    const next = pruned(field, textMaps.has(name))
    changed ||= next !== field
    fields.push([name, next])
  }
  return changed ? Object.fromEntries(fields) : value
}
