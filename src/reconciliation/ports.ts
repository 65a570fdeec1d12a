/**
 * What reconciliation needs of its siblings and its own parts of one another. Inbox, ledger and outbox never
 * import one another, nor this: the root hands them in.
 */
import type { Executor } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { Environment, InboxEvent } from '../workflow/event.ts'
import type { FoldFailure } from '../workflow/fold.ts'
import type { Name, OrderLedger } from '../workflow/order.ts'
import type { OutboxPort } from '../workflow/outbox-port.ts'
import type { FindingDraft, Outcome, PaymentOutcome } from '../workflow/outcome.ts'
import type { MadeEvent, ProviderRecord, RecordReference, Records } from '../workflow/records.ts'
import type { Claim, NamedOrder, Resolved } from '../workflow/resolve-event.ts'

/** A configured source, as far as reconciliation needs it. */
export interface ConfiguredSourceLike {
  readonly name: string
  readonly account: string
  readonly environment: Environment
  readonly source: {
    readonly provider: string
    readonly allowsAccount: (account: string) => boolean
    readonly records?: Records | undefined
    readonly requestKey?: ((body: Readonly<Record<string, unknown>>) => string | null) | undefined
  }
}

/** A name in the namespace of one source; source 0 and kind `order` is an order's own id. */
export interface SourceName {
  readonly sourceId: number
  readonly kind: string
  readonly value: string
}

/** The ledger, read without locks. */
export interface LedgerReads {
  /** The orders that exist, with all that hangs on them: one snapshot of each. */
  readOrders(tx: Executor, ids: readonly string[]): Promise<ReadonlyMap<string, OrderLedger>>
  lookupNames(
    tx: Executor,
    names: readonly SourceName[],
  ): Promise<ReadonlyMap<string, { readonly orderId: string; readonly workflow: string }>>
  /** Which of these payments are recorded for an order: `sourceId\npaymentId` → order. */
  payers(
    tx: Executor,
    payments: readonly { readonly sourceId: number; readonly id: string }[],
  ): Promise<ReadonlyMap<string, string>>
  nameKey(name: SourceName): string
  /** A stable secret of an order and a name. */
  derive(orderId: string, name: string): string
}

/** The pure part of a batch of work, which the worker runs under locks and a preview without. */
export interface Planning {
  namesOf(resolved: readonly Resolved[]): SourceName[]
  settleAll(
    resolved: readonly Resolved[],
    bound: ReadonlyMap<string, NamedOrder>,
    key: (name: SourceName) => string,
  ): {
    readonly resolved: readonly Resolved[]
    readonly names: ReadonlyMap<string, NamedOrder>
  }
  foldBatch(input: {
    readonly claims: readonly Claim[]
    readonly ledgers: Map<string, OrderLedger>
    readonly names: ReadonlyMap<string, NamedOrder>
    readonly nameKey: (name: SourceName) => string
    readonly decisionId: (event: InboxEvent) => bigint
    readonly payers: ReadonlyMap<string, string>
    readonly derive: (orderId: string, name: string) => string
    readonly outbox: OutboxPort
  }): {
    readonly outcomes: readonly Outcome[]
    readonly failures: readonly FoldFailure[]
    readonly asks: readonly Claim[]
  }
  /** The claims with the linked customers that their handlers name; those that threw apart. */
  withCustomers(
    tx: Executor,
    claims: readonly Claim[],
  ): Promise<{ readonly claims: readonly Claim[]; readonly failures: readonly FoldFailure[] }>
}

/** What a mirror would look at because of a previewed event. */
export interface PreviewedLook {
  readonly object: Name
  /** Whether the event was made of that very object: only then is it known how the object is. */
  readonly isSeen: boolean
  /** Whether the provider ever answered about it. */
  readonly isKnown: boolean
  /** Whether findings would be made, or closed, that are not (or open) here, even where the order stays as it is. */
  readonly hasNews: boolean
}

/** What an event would come to if it were decided now. Nothing was written. */
export interface PreviewOutcome {
  readonly made: MadeEvent
  /** Null where `decide` or `order` threw. */
  readonly outcome: Outcome | null
  readonly failure: unknown
  /** The order that it belongs to, whether it exists or not. */
  readonly orderId: string | null
  /** Whether that order exists here. */
  readonly orderExists: boolean
  /**
   * Of a mirrored type: what it looks at. Its outcome is then what the record as it is would come to, and `made`
   * has the id of the next look.
   */
  readonly look: PreviewedLook | null
  /** It cannot be told without facts that its handler gathers. */
  readonly needsFacts: boolean
  /** The event's number where the inbox has its id already. */
  readonly eventKey: bigint | null
  /**
   * Of a contradiction: the order knows the same one already, or the payment is recorded. Of a deferral: an
   * event of this type waits for the same already. Of a look: it was made because of this very record already, or
   * what it would tell is recorded. Of one that needs facts: its order knows the record's id as a payment or an
   * effect's reference. Then nothing need be put into the inbox.
   */
  readonly known: boolean
  /** It (or older ones of its type) is in the inbox and not decided yet: nothing can be told of it now. */
  readonly isPending: boolean
  /** So, since others of its type or order wait: whatever it says is not in the inbox by itself. */
  readonly isHeldUp: boolean
}

/** Decides events of a provider's records on copies of their orders, without writing anything. */
export interface Preview {
  /** Events of one record, folded together. */
  preview(
    source: ConfiguredSourceLike,
    account: string,
    events: readonly MadeEvent[],
  ): Promise<readonly PreviewOutcome[]>
  /** The same for many records, each on copies of its own, in two or three queries. */
  previewEach(
    source: ConfiguredSourceLike,
    account: string,
    records: readonly (readonly MadeEvent[])[],
    /** The records that the events were made of, for mirrors of them. */
    madeOf?: readonly ProviderRecord[],
  ): Promise<readonly (readonly PreviewOutcome[])[]>
  /** The payments that these events would record if nothing of their orders were recorded yet. */
  paymentsNamed(
    source: ConfiguredSourceLike,
    account: string,
    events: readonly MadeEvent[],
  ): Promise<readonly PaymentOutcome[]>
}

/** A discrepancy with where it was seen and how to look at it again. */
export interface Discrepancy {
  readonly draft: FindingDraft
  /** `provider:account:environment`; `app` and `outbox` for what only this database can tell. */
  readonly source: string
  readonly orderId: string | null
  readonly eventKey: bigint | null
  readonly sourceId: number | null
  readonly reference: RecordReference | null
}

/** The findings' statements, from the ledger. */
export interface FindingsSql {
  id(kind: string, source: string, about: string): string
  /** Answers rows of `finding_id` and `state`. */
  found(found: readonly Discrepancy[]): WritePart | null
  closed(ids: readonly string[], because: string): WritePart | null
}

/** What writing findings came to. */
export interface FindingCounts {
  /** Opened, or open again. */
  readonly opened: number
  /** Ids of these. */
  readonly openedIds: readonly string[]
  readonly seen: number
}

/** Writes findings in the transaction that `tx` is in. */
export interface FindingsWriter {
  id(kind: string, source: string, about: string): string
  found(tx: Executor, found: readonly Discrepancy[]): Promise<FindingCounts>
  /** Closes those of them that are open; answers how many were. */
  close(tx: Executor, ids: readonly string[], because: string): Promise<number>
}

/**
 * Asks the provider for one record. PASS hands in one that counts calls and keeps to the rate; it rejects with
 * RecordsError, or ends the pass by `CallsSpent` of its own.
 */
export type FetchRecord = (
  source: ConfiguredSourceLike,
  reference: RecordReference,
) => Promise<ProviderRecord | null>

/** What looking at a record of an object kind says before anything is put into the inbox. */
export interface LookedAt {
  readonly record: ProviderRecord
  /** One for each event made of it; empty for a record that is not judged yet. */
  readonly previews: readonly PreviewOutcome[]
  /**
   * Those of them that would change something here (or end dead), and whose id the inbox does not have; and
   * what is decided now of facts that are dead.
   */
  readonly inject: readonly PreviewOutcome[]
  /** By the ids of looks to be put in: how their objects differ from their orders. */
  readonly differs: ReadonlyMap<string, Discrepancy>
  /** It changed so lately that its delivery may still be under way: nothing is injected or judged. */
  readonly isYoung: boolean
  /** It was passed over for what waits in the inbox: it is to be looked at again. */
  readonly isHeldUp: boolean
}

/**
 * What a pass over one source remembers between its pages and its comparison, in memory that hardly grows with
 * the number of records: which payments the records confirm, and which records disagreed.
 */
export interface WindowSeen {
  /** Whether a payment was confirmed as paid. */
  confirms(account: string, paymentId: string): boolean
  /** Records that are to be judged once what was injected is decided. */
  readonly suspects: number
}

/** A window to be compared, both ways. */
export interface CompareInput {
  readonly source: ConfiguredSourceLike
  readonly seen: WindowSeen
  /** Local facts decided in `[localFrom, to)` are held against the provider: the part that is new to this pass. */
  readonly localFrom: Date
  readonly to: Date
  /** The database's now less the lag: what changed at the provider since then is not judged yet. */
  readonly settledBefore: Date
  readonly fetch: FetchRecord
  readonly signal: AbortSignal
}

/** What a comparison came to. */
export interface CompareReport {
  readonly compared: number
  readonly opened: number
  readonly openedIds: readonly string[]
  readonly closed: number
}

/** What a record (or its absence) says against the ledger, now. */
export interface Judgement {
  readonly reference: RecordReference
  readonly record: ProviderRecord | null
  /** `young`: it changed too lately to be judged. */
  readonly verdict: 'agrees' | 'differs' | 'young'
  /** Under the kinds that a pass would open. */
  readonly discrepancies: readonly Discrepancy[]
}

/** Comparison, as a pass and a repair use it. */
export interface Comparison {
  /** The memory of a new pass. */
  newSeen(): WindowSeen
  /** Looks at one page of an object kind: one preview for each record, remembered in `seen`. */
  look(
    source: ConfiguredSourceLike,
    account: string,
    records: readonly ProviderRecord[],
    input: { readonly seen: WindowSeen; readonly settledBefore: Date },
  ): Promise<readonly LookedAt[]>
  /** The draft of `event_missing` for an event that a pass puts into the inbox. */
  missing(
    source: ConfiguredSourceLike,
    account: string,
    event: MadeEvent,
    orderId?: string | null,
  ): Promise<Discrepancy>
  /** When what was injected is decided: records against the ledger, the ledger against records, open findings again. */
  compareWindow(input: CompareInput): Promise<CompareReport>
  /** What only this database can tell, once a pass, whatever its sources. */
  checkLocally(input: {
    readonly from: Date
    readonly to: Date
    readonly signal: AbortSignal
  }): Promise<CompareReport>
  /** Tells of findings that are past their due date, once a step. */
  escalate(): Promise<number>
  /** Fetches a record and judges it, for a repair that wants to know whether both sides agree now. */
  judgeReference(
    source: ConfiguredSourceLike,
    reference: RecordReference,
    fetch: FetchRecord,
    settledBefore?: Date,
  ): Promise<Judgement>
  /** The same for what only this database can tell of an order. */
  judgeOrder(orderId: string): Promise<readonly Discrepancy[]>
  /** Whether both sides agree about what a finding compares; null: this cannot be told. Closes nothing. */
  judgeFinding(findingId: string, fetch: FetchRecord): Promise<boolean | null>
}
