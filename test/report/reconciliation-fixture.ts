/** Passes, checkpoints and repairs, written by SQL as reconciliation would have left them. */
import type { LedgerFixture } from './ledger-fixture.ts'

/** What {@link reconciledHistory} recorded. */
export interface ReconciledHistory {
  readonly run: string
  /** The finding that the repair ended. */
  readonly repaired: string
  readonly repair: string
  readonly decision: string
  /** The finding that somebody dismissed. */
  readonly dismissed: string
}

/** Records a pass over the source of the fixture; returns its id. */
export async function recordRun(
  fixture: LedgerFixture,
  run: {
    readonly how?: string
    readonly state?: string
    readonly error?: string
    /** Seconds from now to its start, and how long it took. */
    readonly at?: number
    readonly took?: number
    readonly injected?: number
  } = {},
): Promise<string> {
  const at = run.at ?? -60
  const running = run.state === 'running'
  const [row] = await fixture.sql<{ run_id: string }>(
    `insert into hookledger.reconciliation_runs
       (run_id, source, how, actor, state, coverage, calls, injected, opened, closed, error, started_at, seen_at, finished_at)
     values (gen_random_uuid(), 'stripe', $1, 'reconciler', $2, $3::text::jsonb, 12, $4, 1, 1, $5,
       now() + $6 * interval '1 second', now() + ($6 + $7) * interval '1 second',
       case when $8 then null else now() + ($6 + $7) * interval '1 second' end) returning run_id`,
    [
      run.how ?? 'scheduled',
      run.state ?? 'complete',
      JSON.stringify({ event: { records: 40, pages: 1, injected: run.injected ?? 3, known: 37 } }),
      run.injected ?? 3,
      run.error ?? null,
      at,
      run.took ?? 2,
      running,
    ],
  )
  return row?.run_id ?? ''
}

/** Records a checkpoint of a kind, `ageSeconds` behind the moment at which `run` moved it. */
export async function recordCheckpoint(
  fixture: LedgerFixture,
  checkpoint: {
    readonly kind: string
    readonly run: string | null
    readonly ageSeconds?: number
    readonly inWork?: boolean
  },
): Promise<void> {
  await fixture.sql(
    `insert into hookledger.reconciliation_checkpoints (source_id, kind, through, run_id, moved_at)
     values (1, $1, now() - $2 * interval '1 second', $3, now())`,
    [checkpoint.kind, checkpoint.ageSeconds ?? 10, checkpoint.run],
  )
  if (checkpoint.inWork !== true) return
  const columns = await fixture.sql(
    `select 1 from information_schema.columns where table_schema = 'hookledger'
       and table_name = 'reconciliation_checkpoints' and column_name = 'slice_to'`,
  )
  await fixture.sql(
    `update hookledger.reconciliation_checkpoints set window_from = through, window_to = now(), slice_from = through
       ${columns.length === 0 ? '' : ', slice_to = now()'} where kind = $1`,
    [checkpoint.kind],
  )
}

/** A finding about order 1001 that was repaired and verified, a dismissed one, and the pass that saw them. */
export async function reconciledHistory(fixture: LedgerFixture): Promise<ReconciledHistory> {
  const run = await recordRun(fixture, { at: -1, took: 2 })
  await recordCheckpoint(fixture, { kind: 'event', run })
  await recordCheckpoint(fixture, { kind: 'refund', run, ageSeconds: 30, inWork: true })
  const repaired = await fixture.finding({ kind: 'refunded_there', order: '1001' })
  const event = await fixture.event({ id: 'evt_repair', type: 'repair.refunded_there' })
  let repair = ''
  const decision = await fixture.decide({
    event,
    kind: 'repaired',
    order: '1001',
    from: 'paid',
    to: 'paid',
    reason: 'refunded there',
    together: async (id, tx) => {
      const [row] = await tx.query<{ repair_id: string }>({
        text: `insert into hookledger.repairs
            (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state, decision_id, verified_at)
          values (gen_random_uuid(), $1, '{"choice":"provider"}', 'the customer wrote', 'worker-1', '1001',
            '{"state":"paid"}', '{"state":"paid"}', $2, clock_timestamp()) returning repair_id`,
        values: [repaired, id],
      })
      repair = row?.repair_id ?? ''
      await tx.query({
        text: `insert into hookledger.operator_acts (act, target, reason, actor)
          values ('repair apply', 'finding:' || $1::text, 'the customer wrote', 'worker-1')`,
        values: [repaired],
      })
    },
  })
  await fixture.sql(
    `update hookledger.findings set state = 'closed', closed_at = now(), closed_because = 'both sides agree' where finding_id = $1`,
    [repaired],
  )
  const dismissed = await fixture.finding({ kind: 'paid_twice', order: '1001' })
  await fixture.sql(
    `insert into hookledger.operator_acts (act, target, reason, actor) values ('findings dismiss', 'finding:' || $1::text, 'a gift', 'ada')`,
    [dismissed],
  )
  await fixture.sql(
    `update hookledger.findings set state = 'dismissed', dismissed_until = now() + interval '1 month', dismissed_evidence = evidence
     where finding_id = $1`,
    [dismissed],
  )
  return { run, repaired, repair, decision, dismissed }
}
