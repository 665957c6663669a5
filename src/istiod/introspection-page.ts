// A value as a plain web page: lists of records as tables, records as two columns.
const style =
  'body{font:14px system-ui;margin:2rem}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}'
const links = ['home', 'scope', 'mem', 'env', 'proc', 'args', 'version', 'signal', 'collection']

export function introspectionPage(title: string, value: unknown): string {
  const menu = links.map((topic) => `<a href="/${topic}z/">${topic}</a>`).join(' · ')
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title><style>${style}</style></head><body><p>${menu}</p><h1>${escapeHtml(title)}</h1>${content(value)}</body></html>\n`
}

function content(value: unknown): string {
  if (Array.isArray(value) && value.length > 0 && value.every(isRecord)) return records(value)
  if (Array.isArray(value)) return table(value.map((one, index) => [String(index), one]))
  return isRecord(value) ? table(Object.entries(value)) : `<pre>${escapeHtml(text(value))}</pre>`
}

function records(list: readonly Record<string, unknown>[]): string {
  const names = [...new Set(list.flatMap((one) => Object.keys(one)))]
  const head = names.map((name) => `<th>${escapeHtml(name)}</th>`).join('')
  const rows = list.map((one) => `<tr>${names.map((name) => `<td>${escapeHtml(text(one[name]))}</td>`).join('')}</tr>`)
  return `<table><tr>${head}</tr>${rows.join('')}</table>`
}

function table(rows: readonly (readonly [string, unknown])[]): string {
  const lines = rows.map(([name, value]) => `<tr><th>${escapeHtml(name)}</th><td>${escapeHtml(text(value))}</td></tr>`)
  return `<table>${lines.join('')}</table>`
}

function text(value: unknown): string {
  if (value === undefined) return ''
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(plain: string): string {
  return plain.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
