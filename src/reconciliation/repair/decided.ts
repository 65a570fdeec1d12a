/**
 * What the decisions of an order say it is: the end of the walk through its states, and which of its
 * entitlements are active. Pure. Their ids have no total order (they are given out before locks are
 * taken), so that moves are counted and not sorted.
 */

/** A decision, as far as it says where an order is. */
export interface DecidedMove {
  readonly decisionId: bigint
  readonly from: string | null
  readonly to: string | null
  readonly entitles: boolean
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
}

/**
 * The state that decisions lead to; null where they do not say (none, or more than one end). A walk
 * begins where the order was opened, or in the workflow's first state.
 */
export function decidedState(moves: readonly DecidedMove[], initial: string): string | null {
  const told = moves.filter((move) => move.to !== null)
  if (told.length === 0) return null
  const opened = told.find((move) => move.from === null)
  const start = opened?.to ?? initial
  const balance = new Map<string, number>([[start, 1]])
  const add = (state: string, step: number): void => {
    balance.set(state, (balance.get(state) ?? 0) + step)
  }
  for (const { from, to } of told) {
    if (from === null || to === null || from === to) continue
    add(from, -1)
    add(to, 1)
  }
  const ends = [...balance].filter(([, left]) => left !== 0)
  const [end] = ends
  return ends.length === 1 && end?.[1] === 1 ? end[0] : null
}

/**
 * A state that a decision went on from although no walk of these decisions leads there: it was made on what
 * somebody had written into the row. Null where there is none.
 */
export function strayedFrom(moves: readonly DecidedMove[], initial: string): string | null {
  const told = moves.filter((move) => move.to !== null)
  const reached = new Set([told.find((move) => move.from === null)?.to ?? initial])
  for (let size = 0; size < reached.size;) {
    size = reached.size
    for (const { from, to } of told)
      if (from !== null && to !== null && reached.has(from)) reached.add(to)
  }
  return told.find(({ from }) => from !== null && !reached.has(from))?.from ?? null
}

/** Whether one of these decisions entitled and granted nothing of this pair: it may have been active already. */
export function mayHaveFound(moves: readonly DecidedMove[], pair: string): boolean {
  return moves.some(
    ({ to, entitles, granted }) => to !== null && entitles && !granted.includes(pair),
  )
}

/** Whether the decisions left `subject entitlement` active, and the last one that granted it. */
export interface DecidedGrant {
  readonly active: boolean
  readonly grantedBy: bigint | null
}

/** Every pair that a decision granted or revoked. Of one pair the two alternate: the count says which was last. */
export function decidedGrants(moves: readonly DecidedMove[]): ReadonlyMap<string, DecidedGrant> {
  const counts = new Map<string, { net: number; grantedBy: bigint | null }>()
  const of = (pair: string): { net: number; grantedBy: bigint | null } => {
    const found = counts.get(pair) ?? { net: 0, grantedBy: null }
    counts.set(pair, found)
    return found
  }
  for (const { decisionId, entitles, granted, revoked } of moves) {
    for (const pair of granted) {
      const count = of(pair)
      count.net++
      if (entitles && (count.grantedBy === null || count.grantedBy < decisionId))
        count.grantedBy = decisionId
    }
    for (const pair of revoked) of(pair).net--
  }
  return new Map(
    [...counts].map(([pair, { net, grantedBy }]) => [pair, { active: net > 0, grantedBy }]),
  )
}
