/** Where what the engine would give differs from what the app itself gives. Pure. */

/** How the two differ. */
export type ShadowDifferenceKind = 'only_here' | 'only_there' | 'quantity' | 'valid_until'

/** One side's answer; `undefined` fields are not compared. */
export interface ShadowAnswer {
  readonly subject: string
  readonly entitlement: string
  readonly quantity?: bigint | undefined
  readonly validUntil?: Date | null | undefined
}

/** A difference, with what each side says. */
export interface ShadowDifference {
  readonly subject: string
  readonly entitlement: string
  readonly kind: ShadowDifferenceKind
  readonly here: Readonly<Record<string, string | null>> | null
  readonly there: Readonly<Record<string, string | null>> | null
  readonly orderIds: readonly string[]
}

/** The differences, sorted by subject and entitlement. The app's quantities and ends count where it gives them. */
export function shadowDifferences(
  here: readonly (ShadowAnswer & { readonly orderIds: readonly string[] })[],
  there: readonly ShadowAnswer[],
): ShadowDifference[] {
  const key = ({ subject, entitlement }: ShadowAnswer): string => `${subject}\u0000${entitlement}`
  const theirs = new Map(there.map((each) => [key(each), each]))
  const ours = new Map(here.map((each) => [key(each), each]))
  const found: ShadowDifference[] = []
  for (const each of here) {
    const other = theirs.get(key(each))
    const kind = other === undefined ? 'only_here' : differing(each, other)
    if (kind === null) continue
    const { subject, entitlement, orderIds } = each
    const said = other === undefined ? null : shown(other)
    found.push({ subject, entitlement, kind, here: shown(each), there: said, orderIds })
  }
  for (const each of theirs.values()) {
    if (ours.has(key(each))) continue
    const { subject, entitlement } = each
    const nothing = { here: null, there: shown(each), orderIds: [] }
    found.push({ subject, entitlement, kind: 'only_there', ...nothing })
  }
  return found.sort((a, b) => (key(a) < key(b) ? -1 : 1))
}

function differing(here: ShadowAnswer, there: ShadowAnswer): ShadowDifferenceKind | null {
  if (there.quantity !== undefined && there.quantity !== here.quantity) return 'quantity'
  if (there.validUntil === undefined) return null
  return there.validUntil?.getTime() === here.validUntil?.getTime() ? null : 'valid_until'
}

function shown({ quantity, validUntil }: ShadowAnswer): Record<string, string | null> {
  return {
    ...(quantity !== undefined && { quantity: quantity.toString() }),
    ...(validUntil !== undefined && { valid_until: validUntil?.toISOString() ?? null }),
  }
}
