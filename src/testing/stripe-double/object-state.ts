/**
 * The one state of the simulated provider: objects by account, events, and the answers stored under
 * idempotency keys. Everything that one request changes is one transaction, one line of the journal and
 * one step in memory: it is there entirely or not at all, also after a kill.
 */
import { join } from 'node:path'
import type Stripe from 'stripe'
import { openJournal, type Journal } from './journal.ts'
import type { ObjectKind, ObjectKinds, StoredObject } from './object-kinds.ts'
import { deepFreeze, Transaction, type Cause, type StoredAnswer } from './transaction.ts'

/** An object with what lists need to know about it. Objects are frozen: a change makes a new one. */
export interface StoredRecord<T = StoredObject> {
  object: T
  /** Position in the order of creation, over all accounts. */
  sequence: number
  /** When it was created, in milliseconds of the double's clock. */
  createdMs: number
}

/** One line of the journal. */
interface JournalLine {
  at: number
  account: string
  counter: number
  put: StoredObject[]
  answer?: StoredAnswer
  /** The id of an object that was taken out. */
  gone?: string
  /** Set in a rewritten journal, where `put` holds a single object that was created at `at`. */
  sequence?: number
}

interface Account {
  records: Map<string, StoredRecord>
  byKind: Map<ObjectKind, StoredRecord[]>
  answers: Map<string, StoredAnswer>
}

/** How the state is opened. */
export interface StateOptions {
  seed: string
  /** The account that the API key belongs to; every other one is connected to it. */
  account: string
  /** Milliseconds since 1970. */
  clock: () => number
  livemode: boolean
  dataDir?: string
  /** The journal is rewritten at the start when it is larger than this many bytes. */
  compactBytes?: number
}

/** Stripe lists events of the last 30 days, in milliseconds. */
export const eventRetentionMs: number = 30 * 24 * 3600_000
/** Stripe may forget an idempotency key after 24 hours; the double does so at once, in milliseconds. */
export const answerRetentionMs: number = 24 * 3600_000

/** The state, in memory and (with a data directory) on disk. */
export class ObjectState {
  readonly clock: () => number
  readonly #options: StateOptions
  readonly #accounts = new Map<string, Account>()
  readonly #journal: Journal | undefined
  #counter = 0
  #sequence = 0
  /** Called with the account and the new events of each transaction, after it is on disk. */
  onEvents: (account: string, events: Stripe.Event[]) => void = () => {}

  constructor(options: StateOptions) {
    this.clock = options.clock
    this.#options = options
    if (options.dataDir !== undefined) {
      this.#journal = openJournal(join(options.dataDir, 'stripe-objects.jsonl'), (line) =>
        this.#replay(line as JournalLine),
      )
    }
    this.connect(options.account)
    const limit = options.compactBytes ?? 32 * 1024 * 1024
    if (this.#journal && this.#journal.size > limit) this.#compact(this.#journal)
  }

  /** Makes a connected account known; it starts empty. */
  connect(account: string): void {
    if (this.#accounts.has(account)) return
    this.#journal?.append({
      at: this.clock(),
      account,
      counter: this.#counter,
      put: [],
    } satisfies JournalLine)
    this.#account(account)
  }

  /** Whether the account is known. */
  has(account: string): boolean {
    return this.#accounts.has(account)
  }

  /** All known accounts, in the order in which they appeared. */
  accounts(): string[] {
    return [...this.#accounts.keys()]
  }

  /**
   * Runs `work` on a view that only it can see and makes all of its changes at once. An error leaves
   * nothing behind: an error that has to be remembered is stored by a transaction of its own.
   */
  transact<T>(account: string, cause: Cause, work: (tx: Transaction) => T): T {
    const now = this.clock()
    const tx = new Transaction({
      account,
      cause,
      nowMs: now,
      isConnected: account !== this.#options.account,
      livemode: this.#options.livemode,
      seed: this.#options.seed,
      counter: this.#counter,
      findAny: (id) => this.findAny(account, id),
      list: (kind) => this.records(account, kind).map((record) => record.object),
    })
    const result = work(tx)
    const { put, answer, counter } = tx.outcome()
    if (put.length === 0 && answer === undefined) return result
    const line: JournalLine = { at: now, account, counter, put, ...(answer && { answer }) }
    this.#journal?.append(line)
    this.#apply(line)
    const events = put.filter((object): object is Stripe.Event => object.object === 'event')
    if (events.length > 0) this.onEvents(account, events)
    return result
  }

  /** Takes an object out: it can neither be listed nor retrieved any more. */
  forget(account: string, id: string): void {
    if (this.findAny(account, id) === undefined) return
    const line: JournalLine = {
      at: this.clock(),
      account,
      counter: this.#counter,
      put: [],
      gone: id,
    }
    this.#journal?.append(line)
    this.#apply(line)
  }

  /** The object as it is now. */
  find<K extends ObjectKind>(account: string, kind: K, id: string): ObjectKinds[K] | undefined {
    const object = this.#accounts.get(account)?.records.get(id)?.object
    return object?.object === kind ? (object as ObjectKinds[K]) : undefined
  }

  /** Any object by its id alone. */
  findAny(account: string, id: string): StoredObject | undefined {
    return this.#accounts.get(account)?.records.get(id)?.object
  }

  /** All objects of a kind, oldest first. */
  records<K extends ObjectKind>(account: string, kind: K): readonly StoredRecord<ObjectKinds[K]>[] {
    return (this.#accounts.get(account)?.byKind.get(kind) ?? []) as StoredRecord<ObjectKinds[K]>[]
  }

  /** Where an object stands among those of its kind, oldest first. */
  position(account: string, kind: ObjectKind, id: string): number | undefined {
    const sequence = this.#accounts.get(account)?.records.get(id)?.sequence
    if (sequence === undefined) return undefined
    const records = this.records(account, kind)
    let low = 0
    let high = records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (records[middle]!.sequence < sequence) low = middle + 1
      else high = middle
    }
    return records[low]?.object.id === id ? low : undefined
  }

  /** The answer stored under an idempotency key, unless it is old enough to be forgotten. */
  answer(account: string, key: string): StoredAnswer | undefined {
    const answers = this.#accounts.get(account)?.answers
    const stored = answers?.get(key)
    if (stored && this.clock() - stored.storedMs >= answerRetentionMs) {
      answers?.delete(key)
      return undefined
    }
    return stored
  }

  close(): void {
    this.#journal?.close()
  }

  #account(id: string): Account {
    let account = this.#accounts.get(id)
    if (!account) {
      account = { records: new Map(), byKind: new Map(), answers: new Map() }
      this.#accounts.set(id, account)
    }
    return account
  }

  #replay(line: JournalLine): void {
    for (const object of line.put) deepFreeze(object)
    this.#apply(line)
  }

  #apply(line: JournalLine): void {
    const account = this.#account(line.account)
    this.#counter = Math.max(this.#counter, line.counter)
    if (line.answer) account.answers.set(line.answer.key, line.answer)
    if (line.gone !== undefined) remove(account, line.gone)
    for (const object of line.put) {
      const known = account.records.get(object.id)
      if (known) {
        known.object = object
        continue
      }
      this.#sequence = line.sequence ?? this.#sequence + 1
      const record: StoredRecord = { object, sequence: this.#sequence, createdMs: line.at }
      account.records.set(object.id, record)
      const siblings = account.byKind.get(object.object as ObjectKind)
      if (siblings) siblings.push(record)
      else account.byKind.set(object.object as ObjectKind, [record])
    }
  }

  /** Keeps each object once, and drops events and answers that the provider would have forgotten. */
  #compact(journal: Journal): void {
    const now = this.clock()
    for (const account of this.#accounts.values()) {
      const events = account.byKind.get('event') ?? []
      const kept = events.filter((record) => now - record.createdMs < eventRetentionMs)
      for (const record of events) {
        if (now - record.createdMs >= eventRetentionMs) account.records.delete(record.object.id)
      }
      account.byKind.set('event', kept)
      for (const answer of account.answers.values()) {
        if (now - answer.storedMs >= answerRetentionMs) account.answers.delete(answer.key)
      }
    }
    journal.replace(this.#snapshot())
  }

  *#snapshot(): Generator<JournalLine> {
    const counter = this.#counter
    const records: { account: string; record: StoredRecord }[] = []
    for (const [id, account] of this.#accounts) {
      yield { at: this.clock(), account: id, counter, put: [] }
      for (const record of account.records.values()) records.push({ account: id, record })
      for (const answer of account.answers.values()) {
        yield { at: answer.storedMs, account: id, counter, put: [], answer }
      }
    }
    // In order of creation, so that a replay gives every record its old place.
    records.sort((one, other) => one.record.sequence - other.record.sequence)
    for (const { account, record } of records) {
      const { object, sequence, createdMs } = record
      yield { at: createdMs, account, counter, put: [object], sequence }
    }
  }
}

function remove(account: Account, id: string): void {
  const record = account.records.get(id)
  if (!record) return
  const kind = record.object.object as ObjectKind
  account.records.delete(id)
  account.byKind.set(
    kind,
    (account.byKind.get(kind) ?? []).filter((each) => each !== record),
  )
}
