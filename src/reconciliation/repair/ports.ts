/**
 * What repairs need of the rest: the ledger's one statement, the workflows' fold, the outbox, the
 * sources that can be asked. Siblings are handed in, never imported.
 */
import type { Database, Executor } from '../../postgres/executor.ts'
import type { WritePart } from '../../postgres/write-parts.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { AppOperation, OperationDraft } from '../../workflow/outbox-port.ts'
import type { FindingDraft, Outcome } from '../../workflow/outcome.ts'
import type { MadeEvent, ProviderRecord, Records } from '../../workflow/records.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import type { Environment } from '../../workflow/event.ts'
import type { FindingRow, SourceRow } from './finding.ts'

/** A configured source, as far as it can be asked. */
export interface AskedSource {
  readonly name: string
  readonly provider: string
  /** Its own account; records may be of others (Connect). */
  readonly account: string
  readonly records: Records | null
}

/** Events as the provider's records give them, to be folded over the orders that they lead to. */
export interface FoldInput {
  readonly source: SourceRow
  readonly events: readonly MadeEvent[]
  /** The one decision that all of it will be of. */
  readonly decisionId: bigint
  /** Checks of money and of transitions let everything pass: a person accepts it. */
  readonly lenient: boolean
  /** Whether orders are locked, and one that no row stands for is inserted to hold its key; else they are read. */
  readonly writes: boolean
  /** Folds over an order as if nothing of it were recorded, instead of over what is. */
  readonly fromNothing?: OrderLedger | undefined
  /**
   * The records that the events were made of. What mirrors follow is folded from them only where nothing comes of
   * it but a comparison: what is decided of it is decided from an answer of its own.
   */
  readonly records?: readonly ProviderRecord[] | undefined
}

/** One order, before and after. */
export interface FoldedOrder {
  readonly id: string
  readonly before: OrderLedger
  readonly after: OrderLedger
  readonly outcomes: readonly Outcome[]
}

/** What folding came to. */
export interface Folded {
  readonly orders: readonly FoldedOrder[]
  /** Orders that somebody else holds at this moment. */
  readonly held: readonly string[]
  /** Events that lead to no order, with why. */
  readonly loose: readonly string[]
  /** Events that nothing handles or claims, with why. */
  readonly ignored: readonly string[]
  /** Events whose `decide` threw, with what it said. */
  readonly failures: readonly string[]
}

/** What one commit writes to the ledger; the ledger's own type, as far as repairs use it. */
export interface RepairBatch {
  readonly decided: readonly {
    readonly outcome: Outcome
    readonly attempts: number
    readonly recorded: boolean
    readonly recordedAs?:
      | {
          readonly kind: 'repaired'
          readonly eventKey: bigint
          readonly supersedes: bigint | null
        }
      | undefined
  }[]
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly after: ReadonlyMap<string, OrderLedger>
  readonly findings: readonly {
    readonly draft: FindingDraft
    readonly source: string
    readonly orderId: string | null
    readonly eventKey: bigint | null
  }[]
  readonly closedFindings: readonly string[]
  readonly actor: string
}

/** A name in the namespace of one source; source 0 and kind `order` is an order's own id. */
export interface NameOfSource {
  readonly sourceId: number
  readonly kind: string
  readonly value: string
}

/** Everything that planning and applying need. */
export interface RepairContext {
  readonly db: Database
  readonly installationId: string
  readonly environment: Environment
  readonly workflows: ReadonlyMap<string, Workflow>
  /** Names of destinations with their kinds. */
  readonly destinations: ReadonlyMap<string, { readonly kind: string }>
  /** The configured source of a row; null where none is configured. */
  source(row: Omit<SourceRow, 'sourceId'>): AskedSource | null
  /** Reads orders; where this writes, it locks them, sorted, without waiting for whoever holds one. */
  orders(
    tx: Executor,
    ids: readonly string[],
    writes: boolean,
  ): Promise<{
    readonly ledgers: ReadonlyMap<string, OrderLedger>
    readonly held: ReadonlySet<string>
  }>
  /** Folds events over the orders that they lead to. */
  fold(tx: Executor, input: FoldInput): Promise<Folded>
  /** The order that a payment is recorded for. */
  payer(tx: Executor, sourceId: number, paymentId: string): Promise<string | null>
  writeNames(
    tx: Executor,
    names: readonly (NameOfSource & { readonly orderId: string })[],
  ): Promise<readonly NameOfSource[]>
  /**
   * Stores an event of the source `hookledger` with its body, without making it ready; null: one with this id
   * is there.
   */
  storeEvent(
    tx: Executor,
    event: { readonly eventId: string; readonly eventType: string; readonly body: string },
  ): Promise<bigint | null>
  /** The ledger's one statement, with further parts of the same commit. */
  apply(tx: Executor, batch: RepairBatch, parts: readonly WritePart[]): Promise<void>
  /** What makes events ready that wait for these names. */
  wake(names: readonly NameOfSource[]): readonly WritePart[]
  operations(
    drafts: readonly (OperationDraft & { readonly decisionId: bigint })[],
  ): readonly WritePart[]
  /** The permanent id of an operation that no effect asks for. */
  operationId(destination: string, key: string): string
  addOperation(tx: Executor, operation: AppOperation): Promise<'added' | 'existed'>
  /** Runs the `apply` of the effects that an outcome makes. */
  runEffects(
    tx: Executor,
    outcome: Outcome,
    orders: ReadonlyMap<string, OrderLedger>,
  ): Promise<void>
  /** Registers a workflow's states, which its decisions name. */
  knowStates(tx: Executor, workflow: Workflow): Promise<void>
  /** Told of a repair once it is committed, with the destinations that it sends to. */
  told(outcome: Outcome, destinations: readonly string[]): void
  /**
   * Compares again what a finding is about, the provider asked anew: whether it would still be found; null: this
   * cannot be told, or not now.
   */
  holds(finding: FindingRow): Promise<boolean | null>
  readonly lockTimeoutMs: number
  readonly statementTimeoutMs: number
  /** How long a call to the provider may take. */
  readonly callMs: number
}
