// Tables of the API server as text, and tables of our own.

export interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority?: number }[]
  readonly rows: readonly {
    readonly cells: readonly unknown[]
    readonly object?: { readonly metadata?: { readonly namespace?: string } }
  }[]
}

/** Columns of equal width with three blanks, or so many, between them. */
export function columns(rows: readonly (readonly string[])[], blanks = 3): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  }
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, index) => cell.padEnd(widths[index] ?? 0))
          .join(' '.repeat(blanks))
          .trimEnd()}\n`,
    )
    .join('')
}

/** @param options.wide also the columns the server gives a lower priority. */
export function tableText(table: Table, options: { readonly wide: boolean; readonly namespaces: boolean }): string {
  const shown = table.columnDefinitions
    .map((column, index) => ({ ...column, index }))
    .filter(({ priority }) => options.wide || (priority ?? 0) === 0)
  const head = shown.map(({ name }) => name.toUpperCase())
  const rows = table.rows.map(({ cells, object }) => {
    const texts = shown.map(({ index }) => String(cells[index] ?? '<none>'))
    return options.namespaces ? [object?.metadata?.namespace ?? '', ...texts] : texts
  })
  return columns([options.namespaces ? ['NAMESPACE', ...head] : head, ...rows])
}
