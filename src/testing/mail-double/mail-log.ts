/**
 * What the simulated mail service received and did, one entry each, appended and never changed: its own
 * testimony, to be compared with what the ledger claims. An email and the answer stored for its key are
 * one entry: a kill leaves both or none.
 */
import { join } from 'node:path'
import { openJournal, type Journal } from '../stripe-double/journal.ts'
import type { MailFault } from './mail-faults.ts'

/** A call came in; written before anything else is done about it. */
export interface MailCallEntry {
  kind: 'call'
  /** Milliseconds since 1970. */
  at: number
  /** Which call this is, from 1. */
  call: number
  /** What came as `Idempotency-Key`. */
  key: string | null
  /** SHA-256 of the body's bytes, as hex. */
  sha256: string
}

/** An email was accepted: the only entry that means that somebody gets one. */
export interface MailSentEntry {
  kind: 'email'
  at: number
  call: number
  key: string
  sha256: string
  /** What is answered to this key for as long as it is honored. */
  answer: { id: string }
  /** The email as it was asked for. */
  email: Readonly<Record<string, unknown>>
}

/** A key was known: no second email, the stored answer instead. */
export interface MailAbsorbedEntry {
  kind: 'absorbed'
  at: number
  call: number
  key: string
}

/** How a call ended. */
export interface MailAnswerEntry {
  kind: 'answer'
  at: number
  call: number
  /** HTTP status; null when the caller got no answer. */
  status: number | null
  /** The fault that met the call. */
  fault: MailFault | null
}

/** Any entry. */
export type MailLogEntry = MailCallEntry | MailSentEntry | MailAbsorbedEntry | MailAnswerEntry

/** What is known of one key. */
export interface MailKeyRecord {
  readonly key: string
  readonly calls: number
  /** The emails that were sent under it, oldest first: one, unless it was forgotten in between. */
  readonly emails: readonly MailSentEntry[]
  /** The hashes of all bodies that came with it. */
  readonly sha256: ReadonlySet<string>
}

/** Figures over the whole log. */
export interface MailCounts {
  readonly calls: number
  readonly emails: number
  /** Calls under a key that was known: duplicates that made no second email. */
  readonly absorbed: number
  /** Calls that met a fault, by fault. */
  readonly faults: Readonly<Partial<Record<MailFault, number>>>
}

interface WrittenKeyRecord {
  key: string
  calls: number
  emails: MailSentEntry[]
  sha256: Set<string>
}

/** The log, in memory and (with a data directory) in `mail-log.jsonl`. */
export class MailLog {
  readonly #journal: Journal | undefined
  readonly #keys = new Map<string, WrittenKeyRecord>()
  readonly #emails: MailSentEntry[] = []
  readonly #faults: Partial<Record<MailFault, number>> = {}
  #calls = 0
  #absorbed = 0

  constructor(dataDir?: string) {
    if (dataDir === undefined) return
    this.#journal = openJournal(join(dataDir, 'mail-log.jsonl'), (entry) =>
      this.#keep(entry as MailLogEntry),
    )
  }

  /** Writes an entry; returns when it would outlive this process. */
  append(entry: MailLogEntry): void {
    this.#journal?.append(entry)
    this.#keep(entry)
  }

  /** The emails that were sent, oldest first. */
  get emails(): readonly MailSentEntry[] {
    return this.#emails
  }

  /** What is known of a key. */
  find(key: string): MailKeyRecord | undefined {
    return this.#keys.get(key)
  }

  /** Every key that ever came. */
  keys(): Iterable<MailKeyRecord> {
    return this.#keys.values()
  }

  counts(): MailCounts {
    return {
      calls: this.#calls,
      emails: this.#emails.length,
      absorbed: this.#absorbed,
      faults: { ...this.#faults },
    }
  }

  close(): void {
    this.#journal?.close()
  }

  #keep(entry: MailLogEntry): void {
    switch (entry.kind) {
      case 'call':
        this.#calls++
        if (entry.key !== null) this.#keepCall(entry.key, entry.sha256)
        return
      case 'email':
        this.#emails.push(entry)
        this.#keys.get(entry.key)?.emails.push(entry)
        return
      case 'absorbed':
        this.#absorbed++
        return
      case 'answer':
        if (entry.fault !== null) this.#faults[entry.fault] = (this.#faults[entry.fault] ?? 0) + 1
    }
  }

  #keepCall(key: string, sha256: string): void {
    const record = this.#keys.get(key) ?? { key, calls: 0, emails: [], sha256: new Set() }
    record.calls++
    record.sha256.add(sha256)
    this.#keys.set(key, record)
  }
}
