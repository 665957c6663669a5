// IP addresses as certificates carry them.
import { isIP } from 'node:net'

/**
 * Four bytes of an IPv4 address, also of one written as an IPv6 address (`::ffff:1.2.3.4`), or sixteen of an IPv6 one; undefined for
 * anything else. A zone makes an address one of its host alone: it is none here.
 */
export function ipBytes(text: string): Buffer | undefined {
  if (text.includes('%')) return undefined
  const family = isIP(text)
  if (family === 4) return Buffer.from(text.split('.').map(Number))
  if (family !== 6) return undefined
  // A URL writes every IPv6 address in one way: groups of hexadecimal digits, the longest run of zeros left out.
  const { hostname } = new URL(`http://[${text}]/`)
  const [before = '', after] = hostname.slice(1, -1).split('::')
  const [left, right] = [groupsOf(before), groupsOf(after ?? '')]
  const groups =
    after === undefined ? left : [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
  const bytes = Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
  return bytes.subarray(0, 12).equals(mappedPrefix) ? bytes.subarray(12) : bytes
}

const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex')

function groupsOf(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}
