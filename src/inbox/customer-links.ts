/**
 * Which subject a provider's customer is. A wait for a link and the link itself write the same row, so that
 * the two cannot miss each other; what is read here is under the orders' locks, as everything decided from is.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'
import { keyText } from '../workflow/checked-text.ts'
import type { LinkedCustomer } from '../workflow/gathering.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { BatchOutdated, EventFailure } from './batch-failure.ts'
import type { SourceName } from './ledger-port.ts'

/** The kind under which events wait for a customer to be linked. */
export const customerKind = 'customer'

/** A customer of a provider's account. */
export interface Customer {
  readonly sourceId: number
  readonly id: string
}

/** What waits for a customer waits for this name. */
export function customerName({ sourceId, id }: Customer): SourceName {
  return { sourceId, kind: customerKind, value: id }
}

/**
 * The customer that a claim's handler names; null: none, or it needs an answer that is not there yet.
 *
 * @throws PermanentError for what cannot be an id, and whatever the handler throws
 */
export function customerOf({ event, body, candidate, inputs }: Claim): Customer | null {
  const { customer, mirror } = candidate.handler
  if (customer === undefined || (mirror !== undefined && inputs?.mirror === undefined)) return null
  const id = customer({ event: body, current: inputs?.mirror?.current })
  if (id === null || id === undefined) return null
  return { sourceId: event.sourceId, id: keyText(id, 'id of the customer') }
}

/** The customers that a deferred event waits for. */
export function waitedCustomers({ event, wait }: Outcome): Customer[] {
  return (wait?.customers ?? []).map((id) => ({ sourceId: event.sourceId, id }))
}

/**
 * Writes the rows that a link will be written to, for events that wait for it. Whoever links one of them
 * meanwhile has committed before this returns, or waits for this transaction and sees the waits then.
 *
 * @throws BatchOutdated where one was linked since it was read: nothing would wake its event
 */
export async function awaitCustomers(
  db: Database,
  tx: Executor,
  outcomes: readonly Outcome[],
): Promise<void> {
  const customers = distinctOf(outcomes.flatMap(waitedCustomers))
  if (customers.length === 0) return
  // sorted by the full key, so that two batches do not meet crosswise; every row is locked, new or not
  const rows = await tx.query<{ subject: string | null }>({
    text: `insert into ${db.schema}customer_links as l (source_id, customer_id)
      select * from unnest($1::integer[], $2::text[]) as w(source_id, customer_id)
      order by source_id, customer_id collate "C"
      on conflict (source_id, customer_id) do update set subject = l.subject
      returning subject`,
    values: [customers.map((each) => each.sourceId), customers.map((each) => each.id)],
  })
  if (rows.some(({ subject }) => subject !== null)) throw new BatchOutdated()
}

/**
 * Reads the subjects of the customers that these claims' handlers name, in one statement; in none where they
 * name nobody. A subject that became another one is that one.
 *
 * @throws EventFailure where a handler's `customer` threw: the batch runs on without that event
 */
export async function readCustomerLinks(
  db: Database,
  tx: Executor,
  claims: readonly Claim[],
): Promise<ReadonlyMap<Claim, LinkedCustomer>> {
  const wanted = new Map<Claim, Customer>()
  for (const claim of claims) {
    const customer = named(claim)
    if (customer !== null) wanted.set(claim, customer)
  }
  if (wanted.size === 0) return new Map()
  const subjects = await subjectsOf(db, tx, [...wanted.values()])
  return new Map(
    [...wanted].map(([claim, customer]) => {
      const subject = subjects.get(keyOf(customer)) ?? null
      return [claim, Object.freeze({ id: customer.id, subject })]
    }),
  )
}

async function subjectsOf(
  db: Database,
  tx: Executor,
  customers: readonly Customer[],
): Promise<ReadonlyMap<string, string>> {
  const distinct = distinctOf(customers)
  const rows = await tx.query<{ source_id: number; customer_id: string; subject: string }>({
    text: `select l.source_id, l.customer_id, ${presentSubject(db.schema, 'l.subject')} as subject
      from unnest($1::integer[], $2::text[]) as k(source_id, customer_id)
      cross join lateral (select * from ${db.schema}customer_links l
        where l.source_id = k.source_id and l.customer_id = k.customer_id offset 0) l
      where l.subject is not null`,
    repeated: true,
    values: [distinct.map((each) => each.sourceId), distinct.map((each) => each.id)],
  })
  return new Map(
    rows.map((row) => [keyOf({ sourceId: row.source_id, id: row.customer_id }), row.subject]),
  )
}

function named(claim: Claim): Customer | null {
  try {
    return customerOf(claim)
  } catch (error) {
    throw new EventFailure(claim.event.key, error)
  }
}

function distinctOf(customers: readonly Customer[]): Customer[] {
  return [...new Map(customers.map((each) => [keyOf(each), each])).values()]
}

function keyOf({ sourceId, id }: Customer): string {
  return `${sourceId}\u0000${id}`
}
