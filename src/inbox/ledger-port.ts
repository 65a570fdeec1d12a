/**
 * What the inbox needs of the ledger. The two are siblings that never import one another: the root
 * hands the ledger in.
 */
import type { Executor } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { FindingDraft, Outcome } from '../workflow/outcome.ts'

/** A name in the namespace of one source; source 0 and kind `order` is an order's own id. */
export interface SourceName {
  readonly sourceId: number
  readonly kind: string
  readonly value: string
}

/** The ledger, as a batch of work uses it. */
export interface LedgerPort {
  nameKey(name: SourceName): string
  lookupNames(
    tx: Executor,
    names: readonly SourceName[],
  ): Promise<ReadonlyMap<string, { readonly orderId: string; readonly workflow: string }>>
  lockOrders(
    tx: Executor,
    ids: readonly string[],
    openable: readonly {
      readonly id: string
      readonly workflow: string
      readonly initial: string
    }[],
  ): Promise<{
    readonly ledgers: ReadonlyMap<string, OrderLedger>
    readonly held: ReadonlySet<string>
  }>
  writeNames(
    tx: Executor,
    writes: readonly (SourceName & { readonly orderId: string | null })[],
  ): Promise<readonly (SourceName & { readonly orderId: string })[]>
  /** Which of these payments are recorded for an order already: `sourceId\npaymentId` → order. */
  payers(
    tx: Executor,
    payments: readonly { readonly sourceId: number; readonly id: string }[],
  ): Promise<ReadonlyMap<string, string>>
  apply(
    tx: Executor,
    batch: {
      readonly decided: readonly {
        readonly outcome: Outcome
        readonly attempts: number
        readonly recorded: boolean
        readonly recordedAs?:
          | {
              readonly kind: 'redecided' | 'repaired'
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
    },
    inboxParts: readonly WritePart[],
  ): Promise<void>
  findingId(kind: string, source: string, about: string): string
  /** A stable secret of an order and a name. */
  derive(orderId: string, name: string): string
}
