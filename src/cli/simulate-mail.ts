/**
 * What became of the emails of a simulation: what the ledger says of them, compared with the log of the
 * mail service where that is the simulated one.
 */
import type { Database } from '../postgres/executor.ts'
import type { MailDouble } from '../testing/mail-double/mail-double.ts'
import type { MailFault } from '../testing/mail-double/mail-faults.ts'
import { compareMail, type EmailOperation } from '../testing/simulation/mail-comparison.ts'

/** What became of the emails; the keys are what `--json` prints. */
export interface MailReport {
  /** One a license, one a refund, and one a paid invoice of an organization. */
  readonly operations: number
  /** Of them, by state. */
  readonly states: Readonly<Record<string, number>>
  /** Calls whose attempt the ledger committed before it was made. */
  readonly calls: number
  /** Null where the emails went elsewhere. */
  readonly service: MailService | null
  /** Where ledger and mail service disagree, one line each. */
  readonly differences: readonly string[]
}

/** What the simulated mail service says by its own log. */
export interface MailService {
  readonly arrived: number
  /** Calls under a key that had made its email already. */
  readonly absorbed: number
  readonly faults: Readonly<Partial<Record<MailFault, number>>>
}

/** The effects of the demo that send an email. */
const emailed = ['license', 'refund', 'credits']

/** Whether no email is under way or will be tried by itself. */
export async function isMailSettled(db: Database): Promise<boolean> {
  const [row] = await db.query<{ open: boolean }>({
    text: `select exists (select 1 from ${db.schema}outbox_operations
      where next_attempt_at is not null or state = 'sending') as open`,
  })
  return row?.open === false
}

/** Reports on all emails. Each license, refund and paid invoice of these orders must have one. */
export async function reportMail(
  db: Database,
  orders: readonly string[],
  double: MailDouble | null,
): Promise<MailReport> {
  const operations = await emailOperations(db)
  const states: Record<string, number> = {}
  for (const { state } of operations) states[state] = (states[state] ?? 0) + 1
  const counts = double?.log.counts()
  return {
    operations: operations.length,
    states,
    calls: operations.reduce((sum, operation) => sum + operation.calls, 0),
    service:
      counts === undefined
        ? null
        : { arrived: counts.emails, absorbed: counts.absorbed, faults: counts.faults },
    differences: [
      ...(await unsent(db, orders)),
      ...(double === null ? [] : compareMail(operations, double.log)),
    ],
  }
}

async function emailOperations(db: Database): Promise<EmailOperation[]> {
  const s = db.schema
  const rows = await db.query<{
    operation_id: string
    order_id: string | null
    state: string
    calls: string
  }>({
    text: `select o.operation_id::text as operation_id, o.order_id, o.state,
        (select count(*) from ${s}outbox_attempts a where a.operation_id = o.operation_id and a.kind = 'call') as calls
      from ${s}outbox_operations o where o.destination = 'email' order by o.sequence`,
  })
  return rows.map((row) => ({
    operationId: row.operation_id,
    orderId: row.order_id,
    state: row.state,
    calls: Number(row.calls),
  }))
}

/** Effects without the one operation that they must have. */
async function unsent(db: Database, orders: readonly string[]): Promise<string[]> {
  const s = db.schema
  const rows = await db.query<{ order_id: string; effect_type: string; operations: string }>({
    text: `select f.order_id, f.effect_type, count(o.operation_id) as operations
      from ${s}fulfillment_effects f
      left join ${s}outbox_operations o on o.order_id = f.order_id and o.effect_type = f.effect_type
        and o.effect_reference = f.effect_reference and o.destination = 'email'
      where f.order_id = any ($1::text[]) and f.effect_type = any ($2::text[])
      group by f.order_id, f.effect_type, f.effect_reference having count(o.operation_id) <> 1`,
    values: [orders, emailed],
  })
  return rows.map(
    (row) => `a ${row.effect_type} of order ${row.order_id} has ${row.operations} emails`,
  )
}
