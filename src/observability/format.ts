// Log records as lines: tab-separated text or one JSON object.
import type { Level } from './levels.ts'

/** A value that is always written in quotes in text lines, such as an identity in an access log. */
export interface Quoted {
  readonly quoted: string
}

export type FieldValue = string | number | bigint | boolean | Quoted | Error | undefined
/** Written in order; fields that are undefined are left out. */
export type Fields = Readonly<Record<string, FieldValue>>

export interface LogRecord {
  readonly time: Date
  readonly level: Level
  readonly scope: string
  readonly message: string
  readonly fields?: Fields
}

export type FormatRecord = (record: LogRecord) => string

export function quoted(text: string): Quoted {
  return { quoted: text }
}

/** `<time>\t<level>\t<scope>\t<message>\tk=v k2=v2`. The scope `default` is not printed. Control characters are escaped, so that a value cannot forge a line. */
export function formatPlain(record: LogRecord): string {
  const scope = record.scope === 'default' ? '' : `${record.scope}\t`
  const fields = formatFields(record.fields)
  const line = `${timestamp(record.time)}\t${record.level}\t${scope}${escapeControls(record.message)}`
  return fields === '' ? `${line}\n` : `${line}\t${fields}\n`
}

/** One JSON object a line: level, time, scope, then the message under `messageKey`, then the fields as flat keys. */
export function formatJson(messageKey: 'msg' | 'message'): FormatRecord {
  return (record) => {
    const line: Record<string, unknown> = { level: record.level, time: timestamp(record.time) }
    if (record.scope !== 'default') line.scope = record.scope
    line[messageKey] = record.message
    for (const [key, value] of Object.entries(record.fields ?? {})) {
      if (value !== undefined && !Object.hasOwn(line, key)) line[key] = jsonValue(value)
    }
    return `${JSON.stringify(line)}\n`
  }
}

/** The `k=v k2=v2` part of a text line. */
export function formatFields(fields: Fields | undefined): string {
  if (fields === undefined) return ''
  let text = ''
  for (const key in fields) {
    const value = fields[key]
    if (value === undefined) continue
    text += `${text === '' ? '' : ' '}${key}=${plainValue(value)}`
  }
  return text
}

function plainValue(value: Exclude<FieldValue, undefined>): string {
  if (typeof value === 'string') return needsQuotes.test(value) ? JSON.stringify(value) : value
  if (value instanceof Error) return JSON.stringify(value.message)
  return typeof value === 'object' ? JSON.stringify(value.quoted) : String(value)
}

function jsonValue(value: Exclude<FieldValue, undefined>): string | number | boolean {
  if (value instanceof Error) return value.message
  if (typeof value === 'bigint') return value.toString()
  return typeof value === 'object' ? value.quoted : value
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const needsQuotes = /^$|[\s"=\x00-\x1f\x7f\u2028\u2029]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const controls = /[\x00-\x1f\x7f\u2028\u2029]/g

function escapeControls(text: string): string {
  return text.replace(controls, (character) => JSON.stringify(character).slice(1, -1).replace('\x7f', '\\u007f'))
}

function timestamp(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000Z`
}
