/** A few figures for `/metrics`: from small tables and partial indexes only, whatever the size of inbox and outbox. */
import type { Database } from '../postgres/executor.ts'

/** Gauges by name, without prefix. */
export async function gauges(db: Database): Promise<Readonly<Record<string, number>>> {
  const s = db.schema
  const [row] = await db.query<Record<string, string | null>>({
    text: `select
      (select count(*) from ${s}inbox_ready) as inbox_ready,
      (select count(*) from ${s}inbox_delayed) as inbox_delayed,
      (select count(*) from ${s}inbox_suspects) as inbox_suspects,
      (select count(*) from ${s}inbox_gathers where waiting) as inbox_gathers,
      (select count(*) from ${s}fetches) as fetches_open,
      (select count(*) from ${s}fetches where attempts > 0) as fetches_failing,
      (select greatest(0, extract(epoch from clock_timestamp() - min(asked_at))) from ${s}fetches) as fetches_oldest_seconds,
      (select count(*) from ${s}fetch_budgets where closed_until > now()) as fetch_budgets_paused,
      (select count(*) from ${s}inbox_deferred) as inbox_deferred,
      (select count(*) from ${s}inbox_deferred where overdue) as inbox_overdue,
      (select count(*) from ${s}inbox_dead) as inbox_dead,
      (select count(*) from ${s}findings where state in ('open', 'repairing')) as findings_open,
      (select count(*) from ${s}findings where state in ('open', 'repairing') and due_at < now()) as findings_overdue,
      (select count(*) from ${s}findings where state in ('open', 'repairing') and class = 'lag') as findings_lag,
      (select count(*) from ${s}findings where state in ('open', 'repairing') and class = 'contradiction') as findings_contradictions,
      (select count(*) from ${s}repairs where verified_at is null) as repairs_unverified,
      (select greatest(0, extract(epoch from clock_timestamp() - min(through))) from ${s}reconciliation_checkpoints) as reconciliation_oldest_checkpoint_seconds,
      (select count(*) from ${s}outbox_operations where next_attempt_at is not null and state = 'pending') as outbox_pending,
      (select count(*) from ${s}outbox_operations where state = 'sending') as outbox_sending,
      (select count(*) from ${s}outbox_operations where state in ('dead', 'uncertain') and state = 'uncertain') as outbox_uncertain,
      (select count(*) from ${s}outbox_operations where state in ('dead', 'uncertain') and state = 'dead') as outbox_dead,
      (select count(*) from ${s}outbox_destinations where closed_until > now()) as outbox_destinations_paused,
      (select greatest(0, extract(epoch from clock_timestamp() - min(next_attempt_at))) from ${s}outbox_operations
       where next_attempt_at is not null) as outbox_oldest_due_seconds,
      (select max(migration_id) from ${s}migrations) as schema_version,
      (select extract(epoch from clock_timestamp() - min(e.received_at)) from ${s}inbox_events e
       where e.event_key = (select event_key from ${s}inbox_ready order by event_key limit 1)) as inbox_oldest_ready_seconds`,
  })
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [name, Number(value ?? 0)]),
  )
}
