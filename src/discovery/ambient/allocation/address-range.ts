// The addresses of a prefix, handed out one after the other and never twice.
import { ipText, parsePrefix } from '../addresses.ts'

export class AddressRange {
  readonly #bytes: number
  readonly #first: bigint
  readonly #last: bigint
  readonly #used = new Set<bigint>()
  #next: bigint

  /** `prefix` is a CIDR. Throws a RangeError for anything else. */
  constructor(prefix: string) {
    const parsed = parsePrefix(prefix)
    if (parsed === undefined || !prefix.includes('/')) {
      throw new RangeError(`address range: expected a CIDR such as 240.240.0.0/16, got ${JSON.stringify(prefix)}`)
    }
    const bits = parsed.address.length * 8
    const size = 1n << BigInt(bits - parsed.length)
    const base = (toNumber(parsed.address) / size) * size
    this.#bytes = parsed.address.length
    this.#first = base + 1n
    // The last IPv4 address of a prefix is its broadcast address.
    this.#last = base + size - (bits === 32 ? 2n : 1n)
    this.#next = this.#first
  }

  /** Keeps an address from being handed out; those outside of the range do not matter. */
  reserve(address: Uint8Array): void {
    if (address.length !== this.#bytes) return
    const number = toNumber(address)
    if (number >= this.#first && number <= this.#last) this.#used.add(number)
  }

  /** The next address that suits; undefined when there is none left. */
  take(suits: (address: Uint8Array) => boolean): string | undefined {
    for (; this.#next <= this.#last; this.#next += 1n) {
      if (this.#used.has(this.#next)) continue
      const address = toBytes(this.#next, this.#bytes)
      if (!suits(address)) continue
      this.#used.add(this.#next)
      this.#next += 1n
      return ipText(address)
    }
    return undefined
  }
}

function toNumber(address: Uint8Array): bigint {
  return address.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
}

function toBytes(number: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => Number((number >> BigInt(8 * (length - 1 - at))) & 255n))
}
