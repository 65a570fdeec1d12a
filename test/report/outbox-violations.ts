/** For every check about operations, what somebody must do to break what it watches. */
import { recordOperation, type OutboxHistory, type RecordedOperation } from './outbox-fixture.ts'
import type { LedgerFixture } from './ledger-fixture.ts'

/** What a violation works on. */
export interface Broken {
  readonly fixture: LedgerFixture
  readonly outbox: OutboxHistory
  /** Runs statements with the gates open that the schema keeps shut. */
  readonly unguarded: (...statements: string[]) => Promise<void>
}

const record = async ({ fixture }: Broken, operation: RecordedOperation): Promise<void> =>
  void (await recordOperation(fixture.db, { order: null, ...operation }))

/** The violations, by the name of the check. */
export const outboxViolations: Readonly<Record<string, (broken: Broken) => Promise<void>>> = {
  // as if it had been committed in a transaction of its own
  operation_without_decision: ({ unguarded, outbox }) =>
    unguarded(
      `update hookledger.outbox_operations set xid = '3' where operation_id = '${outbox.sent}'`,
    ),
  decision_without_operation: ({ unguarded, outbox }) =>
    unguarded(`delete from hookledger.outbox_operations where operation_id = '${outbox.canceled}'`),
  operation_twice: ({ unguarded, outbox }) =>
    unguarded(
      `alter table hookledger.outbox_operations drop constraint outbox_operations_pkey`,
      `alter table hookledger.outbox_operations drop constraint if exists outbox_operations_sequence_key`,
      `insert into hookledger.outbox_operations overriding system value
        select * from hookledger.outbox_operations where operation_id = '${outbox.sent}'`,
    ),
  called_before_commit: (broken) =>
    record(broken, { tries: [{ at: -5, outcome: 'retry' }], order: null }),
  attempt_missing: ({ unguarded, outbox }) =>
    unguarded(
      `update hookledger.outbox_operations set attempts = 3 where operation_id = '${outbox.sent}'`,
    ),
  request_missing: (broken) => record(broken, { request: null }),
  request_altered: ({ unguarded, outbox }) =>
    unguarded(
      `update hookledger.outbox_requests set request = request || '\\x00' where operation_id = '${outbox.sent}'`,
    ),
  sent_without_answer: (broken) =>
    record(broken, { state: 'sent', tries: [{ outcome: 'uncertain', error: 'timeout' }] }),
  // the key was remembered for 23 hours
  called_past_window: (broken) =>
    record(broken, {
      state: 'sent',
      tries: [
        { outcome: 'uncertain', error: 'reset' },
        { at: 82_802, outcome: 'sent' },
      ],
    }),
  new_key_without_proof: (broken) =>
    record(broken, {
      state: 'sent',
      generation: 2,
      tries: [{ outcome: 'uncertain' }, { generation: 2, outcome: 'sent' }],
    }),
  operation_overdue: (broken) => record(broken, { nextIn: -90_000 }),
  operation_unscheduled: (broken) => record(broken, { nextIn: null }),
  operation_without_finding: ({ unguarded, outbox }) =>
    unguarded(
      `update hookledger.findings set state = 'closed', closed_at = now() where evidence ->> 'operation' = '${outbox.asking}'`,
    ),
  operation_end_unexplained: (broken) => record(broken, { state: 'discarded' }),
}
