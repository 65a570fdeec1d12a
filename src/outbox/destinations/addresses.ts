/**
 * Which addresses an operation is never sent to: everything that is not a public unicast address, and
 * every form of IPv6 that only wraps an IPv4 address, whatever it wraps. Works on bytes, not on text.
 */
import { isIPv4, isIPv6 } from 'node:net'

interface Range {
  readonly prefix: Uint8Array
  readonly bits: number
  readonly what: string
}

const range = (cidr: string, what: string): Range => {
  const [address = '', bits = ''] = cidr.split('/')
  const prefix = addressBytes(address)
  if (prefix === undefined) throw new TypeError(`not an address: ${address}`)
  return { prefix, bits: Number(bits), what: `${what}, ${cidr}` }
}

const refused4: readonly Range[] = [
  range('0.0.0.0/8', 'this network'),
  range('10.0.0.0/8', 'private'),
  range('100.64.0.0/10', 'carrier-grade NAT'),
  range('127.0.0.0/8', 'loopback'),
  range('169.254.0.0/16', 'link-local'),
  range('172.16.0.0/12', 'private'),
  range('192.0.0.0/24', 'reserved for protocols'),
  range('192.0.2.0/24', 'documentation'),
  range('192.88.99.0/24', '6to4 relay'),
  range('192.168.0.0/16', 'private'),
  range('198.18.0.0/15', 'benchmarking'),
  range('198.51.100.0/24', 'documentation'),
  range('203.0.113.0/24', 'documentation'),
  range('224.0.0.0/4', 'multicast'),
  range('255.255.255.255/32', 'broadcast'),
  range('240.0.0.0/4', 'reserved'),
]

/** Named ones first; whatever is outside of 2000::/3 is refused with or without a name. */
const refused6: readonly Range[] = [
  range('::1/128', 'loopback'),
  range('::/128', 'unspecified'),
  range('::ffff:0:0/96', 'IPv4-mapped'),
  range('::ffff:0:0:0/96', 'IPv4-translated'),
  range('::/96', 'IPv4-compatible'),
  range('64:ff9b::/96', 'NAT64'),
  range('64:ff9b:1::/48', 'local NAT64'),
  range('100::/64', 'discard-only'),
  range('2001::/32', 'Teredo'),
  range('2001:2::/48', 'benchmarking'),
  range('2001::/23', 'reserved for protocols'),
  range('2001:db8::/32', 'documentation'),
  range('2002::/16', '6to4'),
  range('3fff::/20', 'documentation'),
  range('3ffe::/16', 'returned to the registry'),
  range('fc00::/7', 'unique local'),
  range('fe80::/10', 'link-local'),
  range('fec0::/10', 'site-local'),
  range('ff00::/8', 'multicast'),
]

const global6 = range('2000::/3', 'global unicast')

/** Why nothing is sent to the address, such as `private, 10.0.0.0/8`; undefined for a public one. */
export function refusedAddress(address: string): string | undefined {
  if (address.includes('%')) return 'bound to an interface'
  const bytes = addressBytes(address)
  if (bytes === undefined) return 'not an address'
  const found = (bytes.length === 4 ? refused4 : refused6).find((each) => holds(each, bytes))
  if (found !== undefined) return found.what
  return bytes.length === 4 || holds(global6, bytes) ? undefined : 'outside of 2000::/3'
}

/** The 4 or 16 bytes of an address in its usual text form; undefined when it is none. */
export function addressBytes(address: string): Uint8Array | undefined {
  if (isIPv4(address)) return Uint8Array.from(address.split('.'), Number)
  if (!isIPv6(address) || address.includes('%')) return undefined
  const [head = '', tail] = address.split('::')
  const before = groups(head)
  if (tail === undefined) return bytesOf(before)
  const after = groups(tail)
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0)
  return bytesOf([...before, ...zeros, ...after])
}

/** Groups of 16 bits; dotted decimals at the end are two of them. */
function groups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

function bytesOf(values: readonly number[]): Uint8Array {
  return Uint8Array.from(values.flatMap((value) => [value >> 8, value & 255]))
}

function holds({ prefix, bits }: Range, address: Uint8Array): boolean {
  const whole = bits >> 3
  for (let at = 0; at < whole; at++) if (prefix[at] !== address[at]) return false
  const rest = bits & 7
  if (rest === 0) return true
  const mask = (255 << (8 - rest)) & 255
  return ((prefix[whole] ?? 0) & mask) === ((address[whole] ?? 0) & mask)
}
