/** What a run has gone through so far, by kind of record: a failed run says it too. */
import type { KindCoverage } from './pass-report.ts'
import type { Window } from './slices.ts'

/** What one page came to. */
export interface PageCount {
  readonly records: number
  readonly injected: number
  readonly known: number
}

/** Counts of one run. */
export class Coverage {
  readonly #kinds = new Map<string, { -readonly [K in keyof KindCoverage]: KindCoverage[K] }>()
  #records = 0
  #injected = 0

  get records(): number {
    return this.#records
  }

  get injected(): number {
    return this.#injected
  }

  /** An account's records of a kind are gone through in this window. */
  begin(kind: string, window: Window): void {
    const from = window.from.toISOString()
    const to = window.to.toISOString()
    const known = this.#kinds.get(kind)
    if (known === undefined) {
      const none = { slices: 0, pages: 0, records: 0, injected: 0, known: 0 }
      this.#kinds.set(kind, { from, to, accounts: 1, ...none })
      return
    }
    known.accounts++
    if (from < known.from) known.from = from
    if (to > known.to) known.to = to
  }

  /** A page was stored; `endsSlice`: it was the last of its slice. */
  page(kind: string, count: PageCount, endsSlice: boolean): void {
    this.#records += count.records
    this.#injected += count.injected
    const known = this.#kinds.get(kind)
    if (known === undefined) return
    known.pages++
    if (endsSlice) known.slices++
    known.records += count.records
    known.injected += count.injected
    known.known += count.known
  }

  toJSON(): Readonly<Record<string, KindCoverage>> {
    return Object.fromEntries([...this.#kinds].map(([kind, counts]) => [kind, { ...counts }]))
  }
}
