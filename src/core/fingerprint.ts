/** A short stable hash of plain data: tells versions apart, protects nothing. */

/** FNV-1a over 64 bits of the JSON form, as 16 hexadecimal digits. */
export function fingerprint(value: unknown): string {
  let hash = 0xcbf29ce484222325n
  for (const character of JSON.stringify(value)) {
    hash ^= BigInt(character.codePointAt(0) ?? 0)
    hash = (hash * 0x100000001b3n) & 0xffffffffffffffffn
  }
  return hash.toString(16).padStart(16, '0')
}
