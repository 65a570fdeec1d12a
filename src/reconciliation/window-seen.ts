/** What a pass over one source remembers from its pages until it compares. */
import type { ProviderRecord, RecordReference } from '../workflow/records.ts'
import { IdSet } from './compare-context.ts'
import type { WindowSeen } from './ports.ts'

/** So many records that disagreed are kept whole: of more, only where they are. */
const mostWhole = 500

/** A record that disagreed; null: it is to be asked for again. */
export interface Suspect {
  readonly reference: RecordReference
  readonly record: ProviderRecord | null
}

/** The memory of a pass. */
export class SeenWindow implements WindowSeen {
  readonly #confirmed = new IdSet()
  readonly #suspects = new Map<string, Suspect>()

  confirms(account: string, paymentId: string): boolean {
    return this.#confirmed.has(account, paymentId)
  }

  get suspects(): number {
    return this.#suspects.size
  }

  confirm(account: string, paymentId: string): void {
    this.#confirmed.add(account, paymentId)
  }

  suspect(record: ProviderRecord): void {
    const reference = referenceOf(record)
    const isKept = this.#suspects.size < mostWhole
    this.#suspects.set(referenceKey(reference), { reference, record: isKept ? record : null })
  }

  /** Suspects of one account. */
  suspectsOf(account: string): readonly Suspect[] {
    return [...this.#suspects.values()].filter(({ reference }) => reference.account === account)
  }

  /** The accounts that suspects are of. */
  accounts(): readonly string[] {
    return [...new Set([...this.#suspects.values()].map(({ reference }) => reference.account))]
  }
}

/** The record as it is asked for again. */
export function referenceOf({ kind, id, account }: ProviderRecord): RecordReference {
  return { kind, id, account }
}

/** A reference as a key of a Map. */
export function referenceKey({ kind, id, account }: RecordReference): string {
  return JSON.stringify([account, kind, id])
}
