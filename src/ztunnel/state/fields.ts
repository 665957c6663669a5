// How one thing of the mesh is stored: some numbers, then a text, in as few bytes as it takes.
import type { TableView } from '../../shared-memory/index.ts'

export interface FieldWriter {
  number(value: number): void
  /** Also notes the length. */
  text(value: string): void
  /** What was written; good until the next one begins. */
  finish(): Uint8Array
  begin(): void
}

/** Reads in the order of writing. */
export interface FieldReader {
  open(view: TableView, leaf: number): void
  number(): number
  text(): string
}

/** The bytes of the numbers times two, plus one for texts of 2 bytes a unit. */
const headBytes = 4

export function createFieldWriter(): FieldWriter {
  let buffer = Buffer.alloc(4096)
  let numbers: number[] = []
  let texts = ''
  return {
    begin() {
      numbers = []
      texts = ''
    },
    number: (value) => void numbers.push(value),
    text(value) {
      numbers.push(value.length)
      texts += value
    },
    finish() {
      const isWide = !isNarrow(texts)
      const most = headBytes + numbers.length * 8 + texts.length * (isWide ? 2 : 1)
      if (buffer.length < most) buffer = Buffer.alloc(most * 2)
      let end = headBytes
      for (const value of numbers) end = writeNumber(buffer, end, value)
      buffer.writeUInt32LE((end - headBytes) * 2 + (isWide ? 1 : 0), 0)
      end += buffer.write(texts, end, isWide ? 'utf16le' : 'latin1')
      return buffer.subarray(0, end)
    },
  }
}

export function createFieldReader(): FieldReader {
  let bytes: Buffer = Buffer.alloc(0)
  let at = 0
  let textAt = 0
  let isWide = false
  function number(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at] as number
      at += 1
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  return {
    open(view, leaf) {
      bytes = view.bytes
      const start = view.valueStart(leaf)
      const head = bytes.readUInt32LE(start)
      isWide = (head & 1) === 1
      at = start + headBytes
      textAt = at + (head >>> 1)
    },
    number,
    /** A text of its own: a slice of a longer one would keep all of that. */
    text() {
      const length = number()
      if (length === 0) return ''
      const from = textAt
      textAt += isWide ? length * 2 : length
      return bytes.toString(isWide ? 'utf16le' : 'latin1', from, textAt)
    },
  }
}

function writeNumber(buffer: Buffer, start: number, value: number): number {
  let at = start
  let rest = value
  while (rest >= 128) {
    buffer[at] = (rest % 128) + 128
    rest = Math.floor(rest / 128)
    at += 1
  }
  buffer[at] = rest
  return at + 1
}

function isNarrow(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0xff) return false
  return true
}
