// IPv4 ranges. Pure.

export interface Cidr {
  readonly base: number
  readonly prefix: number
}

/** @throws RangeError when the text is no IPv4 range */
export function parseCidr(text: string): Cidr {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(text)
  const parts = match?.slice(1, 5).map(Number) ?? []
  const prefix = Number(match?.[5] ?? 32)
  if (parts.length !== 4 || parts.some((part) => part > 255) || prefix > 32) {
    throw new RangeError(`${text} is no IPv4 range`)
  }
  const address = parts.reduce((sum, part) => sum * 256 + part, 0)
  return { base: address - (address % 2 ** (32 - prefix)), prefix }
}

export function formatCidr({ base, prefix }: Cidr): string {
  return `${formatAddress(base)}/${prefix}`
}

export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}

/** The nth address of the range. */
export function addressAt(range: Cidr, index: number): string {
  return formatAddress(range.base + index)
}

/** The nth range of the given prefix inside `range`. */
export function subrange(range: Cidr, prefix: number, index: number): Cidr {
  return { base: range.base + index * 2 ** (32 - prefix), prefix }
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.base < b.base + 2 ** (32 - b.prefix) && b.base < a.base + 2 ** (32 - a.prefix)
}
