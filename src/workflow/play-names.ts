/** The names of a run in memory, and the orders that they lead to: never rebound. */
import type { Name } from './order.ts'
import type { Outcome } from './outcome.ts'
import { settleWaiting, type Claim, type NamedOrder, type Resolved } from './resolve-event.ts'

/** Names and their orders. */
export type BoundNames = ReadonlyMap<string, NamedOrder>

/** What names lead to. */
export class PlayNames {
  readonly #names = new Map<string, NamedOrder>()

  /** Settles what waits for names that are bound, or that an event of this very batch brings. */
  settle(first: readonly Resolved[]): { resolved: readonly Resolved[]; names: BoundNames } {
    // an event alone has nobody to teach
    const names = first.length === 1 ? this.#names : new Map(this.#names)
    const lookup = (sourceId: number, name: Name): NamedOrder | null =>
      names.get(nameKey(sourceId, name)) ?? null
    for (let resolved = first; ;) {
      if (first.length > 1)
        for (const each of resolved) if (each.kind === 'claim') teach(each, names)
      const next = resolved.map((each) =>
        each.kind === 'waiting' ? settleWaiting(each, lookup) : each,
      )
      if (next.every((each, index) => each === resolved[index])) return { resolved, names }
      resolved = next
    }
  }

  /** Binds what a decision learned, and returns the keys that are new. */
  learn({ orderId, workflow, event, learned }: Outcome): string[] {
    if (orderId === null || workflow === null) return []
    const keys = learned.map((name) => nameKey(event.sourceId, name))
    const fresh = keys.filter((key) => !this.#names.has(key))
    for (const key of fresh) this.#names.set(key, { orderId, workflow })
    return fresh
  }
}

function teach(claim: Claim, names: Map<string, NamedOrder>): void {
  if (!claim.event.accountAllowed) return
  for (const name of claim.learned) {
    const key = nameKey(claim.event.sourceId, name)
    if (names.has(key)) continue
    names.set(key, { orderId: claim.orderId, workflow: claim.candidate.workflow.name })
  }
}

/** The key of a source's name, which is also what waits for it. */
export function nameKey(sourceId: number, name: Name): string {
  return `${sourceId}\n${name.kind}\n${name.value}`
}
