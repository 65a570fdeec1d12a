/**
 * The inbox of a run in memory: every event once, with its state, and what waits for which name or
 * order. What is finished is never taken up again.
 */
import type { InboxEvent } from './event.ts'
import { isFinal, type Outcome } from './outcome.ts'

/** An event and what became of it. */
export interface PlayedEvent {
  readonly event: InboxEvent
  readonly state: 'pending' | 'deferred' | 'processed' | 'ignored' | 'dead'
  readonly deliveries: number
  /** The last decision about it; null only while it is pending. */
  readonly outcome: Outcome | null
  /** What its function threw, for an event that is dead of it. */
  readonly error: unknown
  /** When its wait ends; null when it does not wait. */
  readonly deadline: Date | null
  /** Whether its wait passed the deadline; a name or a change of its order still wakes it. */
  readonly overdue: boolean
}

/** A played event as the inbox changes it. */
export type HeldEvent = { -readonly [Key in keyof PlayedEvent]: PlayedEvent[Key] }

/** Events by identity, and their waits. */
export class PlayInbox {
  readonly #events = new Map<string, HeldEvent>()
  readonly #waits = new Map<string, Set<HeldEvent>>()

  /** Every event, in order of arrival. */
  get events(): readonly HeldEvent[] {
    return [...this.#events.values()]
  }

  /**
   * Counts a delivery. A new event is pending; of a known one, what waits or is dead is pending again,
   * and what has a final decision or is ignored stays so.
   */
  receive(event: InboxEvent): HeldEvent {
    const identity = `${event.sourceId}\n${event.eventId}`
    const known = this.#events.get(identity)
    if (known !== undefined) {
      known.deliveries += 1
      if (known.state === 'deferred' || known.state === 'dead') known.state = 'pending'
      return known
    }
    const fresh: HeldEvent = {
      event,
      state: 'pending',
      deliveries: 1,
      outcome: null,
      error: null,
      deadline: null,
      overdue: false,
    }
    this.#events.set(identity, fresh)
    return fresh
  }

  /** Records an outcome; a wait lasts until `deadline` (kept, where it waited before). */
  settle(held: HeldEvent, outcome: Outcome, keys: readonly string[], deadline: Date): void {
    held.outcome = outcome
    held.error = null
    held.state = isFinal(outcome.kind)
      ? 'processed'
      : (outcome.kind as 'deferred' | 'ignored' | 'dead')
    if (outcome.kind === 'deferred') {
      held.deadline ??= deadline
      for (const key of keys) {
        const waiting = this.#waits.get(key) ?? new Set()
        this.#waits.set(key, waiting.add(held))
      }
    } else {
      held.deadline = null
      held.overdue = false
    }
  }

  /** What waits for any of these keys, pending again. */
  wake(keys: readonly string[]): HeldEvent[] {
    const woken: HeldEvent[] = []
    for (const key of keys) {
      for (const held of this.#waits.get(key) ?? []) {
        // what was ignored at its deadline is claimed by a name that comes later
        if (held.state !== 'deferred' && held.state !== 'ignored') continue
        held.state = 'pending'
        woken.push(held)
      }
      this.#waits.delete(key)
    }
    return woken
  }
}
