/** What comparing works with, and small things that its parts share. */
import { createHash } from 'node:crypto'
import type { Signals } from '../core/signals.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Environment } from '../workflow/event.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import type { Registry } from '../workflow/registry.ts'
import type { ConfiguredSourceLike, FindingsWriter, LedgerReads, Preview } from './ports.ts'
import type { ReconcileSettings } from './settings.ts'

/** Who is told of findings past their due date, besides those who listen to signals. */
export interface EscalationSettings {
  /** A destination. */
  readonly to: string
  /** Hours past the due date, ascending: one operation a step. */
  readonly afterHours: readonly number[]
}

/** What every comparison of a configuration works with. */
export interface CompareContext {
  readonly db: Database
  readonly ledger: LedgerReads
  readonly preview: Preview
  readonly findings: FindingsWriter
  readonly registry: Registry
  readonly environment: Environment
  readonly sources: readonly ConfiguredSourceLike[]
  readonly settings: Pick<ReconcileSettings, 'lagMs' | 'stuckAfterMs'>
  readonly identityRetentionDays: number
  /** How long findings may stay open, in milliseconds. */
  readonly dueMs: Readonly<Record<'lag' | 'contradiction', number>>
  readonly lockTimeoutMs: number
  readonly signals: Signals
  readonly escalation: EscalationSettings | null
  readonly addOperation: (tx: Executor, operation: AppOperation) => Promise<'added' | 'existed'>
}

/** An account of a source with its number in this database. */
export interface AccountSource {
  readonly source: ConfiguredSourceLike
  readonly account: string
  /** -1 where nothing of it was ever stored. */
  readonly sourceId: number
  /** `provider:account:environment`. */
  readonly text: string
}

const numbers = new WeakMap<Database, Map<string, number>>()

/** The account with its number. Numbers never change and never go: each is read once. */
export async function accountSource(
  { db }: Pick<CompareContext, 'db'>,
  source: ConfiguredSourceLike,
  account: string,
): Promise<AccountSource> {
  const { provider } = source.source
  const text = `${provider}:${account}:${source.environment}`
  const known = numbers.get(db) ?? new Map<string, number>()
  numbers.set(db, known)
  const number = known.get(text)
  if (number !== undefined) return { source, account, sourceId: number, text }
  const [row] = await db.query<{ source_id: number }>({
    text: `select source_id from ${db.schema}sources
      where provider = $1 and provider_account = $2 and environment = $3`,
    values: [provider, account, source.environment],
  })
  if (row !== undefined) known.set(text, row.source_id)
  return { source, account, sourceId: row?.source_id ?? -1, text }
}

/** A set of accounts and ids that grows by some bytes an id: it keeps hashes. */
export class IdSet {
  #slots = new Float64Array(1024)
  #size = 0

  has(account: string, id: string): boolean {
    const value = hashOf(`${account}\n${id}`)
    return this.#slots[this.#slotOf(this.#slots, value)] === value
  }

  add(account: string, id: string): void {
    const value = hashOf(`${account}\n${id}`)
    const at = this.#slotOf(this.#slots, value)
    if (this.#slots[at] === value) return
    this.#slots[at] = value
    this.#size++
    if (this.#size * 2 > this.#slots.length) this.#grow()
  }

  #slotOf(slots: Float64Array, value: number): number {
    let at = value % slots.length
    while (slots[at] !== 0 && slots[at] !== value) at = (at + 1) % slots.length
    return at
  }

  #grow(): void {
    const slots = new Float64Array(this.#slots.length * 2)
    for (const value of this.#slots) if (value !== 0) slots[this.#slotOf(slots, value)] = value
    this.#slots = slots
  }
}

/** 48 bits that are never 0. Two ids that share them cost one call to the provider less, once in a trillion pairs. */
function hashOf(text: string): number {
  return createHash('sha256').update(text).digest().readUIntBE(0, 6) || 1
}
