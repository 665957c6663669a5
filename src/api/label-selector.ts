// Label selectors as objects carry them (`matchLabels`, `matchExpressions`).

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelSelectorRequirement[]
}

export interface LabelSelectorRequirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | (string & {})
  readonly values?: readonly string[]
}

/** Whether labels meet a selector. An empty selector is met by everything; an unknown operator by nothing. */
export function matchesLabelSelector(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value)
  return (
    equal &&
    (selector.matchExpressions ?? []).every(({ key, operator, values }) =>
      // Null where it is written without a value.
      meetsRequirement(operator, values ?? [], labels[key]),
    )
  )
}

/** Whether the value of a label (undefined: there is none) meets one requirement. An unknown operator is met by nothing. */
export function meetsRequirement(operator: string, values: readonly string[], value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      return false
  }
}
