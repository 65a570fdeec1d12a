/**
 * What is known here of a look that a record suggests: whether it was done because of that very record already,
 * and whether it would tell anything although its order stays as it is.
 */
import type { Executor } from '../postgres/executor.ts'
import { isToldAlready } from '../postgres/look-events.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { ProviderRecord } from '../workflow/records.ts'
import type { Previewed } from './previewed.ts'

/** Looking again would say nothing new: it was done because of this very record, or of nothing that is seen here. */
export function isLookKnown({ made, look }: Pick<Previewed, 'made' | 'look'>): boolean {
  if (look === null) return false
  return look.isSeen ? isToldAlready(made, look.knowledge) : look.isKnown
}

/** Whether an order has the record's id as a payment, or as what an effect refers to. */
export function knowsRecord(
  order: OrderLedger | undefined,
  record: ProviderRecord | null,
): boolean {
  if (order === undefined || record === null) return false
  return (
    order.effects.some(({ reference }) => reference === record.id) ||
    order.payments.some(({ id }) => id === record.id)
  )
}

/** Looks that leave their order as it is. */
export function stillLooks<T extends Pick<Previewed, 'look' | 'outcome'>>(
  asked: readonly T[],
): T[] {
  return asked.filter(({ look, outcome }) => look !== null && outcome?.kind === 'absorbed')
}

/** Where findings are read. */
export interface FindingsContext {
  readonly tx: Executor
  readonly schema: string
  readonly sourceText: string
  readonly findingId: (kind: string, source: string, about: string) => string
}

/** Those of these looks that would end a finding about their order which is open. */
export async function settlingLooks<T extends Pick<Previewed, 'orderId' | 'outcome'>>(
  { tx, schema, sourceText, findingId }: FindingsContext,
  looks: readonly T[],
): Promise<ReadonlySet<T>> {
  const settling = looks.flatMap((each) =>
    (each.outcome?.settles ?? []).map((kind) => ({ each, kind })),
  )
  if (settling.length === 0) return new Set()
  const rows = await tx.query<{ position: number }>({
    text: `select k.position::integer as position from unnest($1::uuid[]) with ordinality as k(id, position)
      where exists (select 1 from ${schema}findings f
        where f.finding_id = k.id and f.state in ('open', 'repairing') offset 0)`,
    repeated: true,
    values: [
      settling.map(({ each, kind }) => findingId(kind, sourceText, `order:${each.orderId}`)),
    ],
  })
  return new Set(rows.flatMap(({ position }) => settling[position - 1]?.each ?? []))
}
