/** For every check about subjects, what somebody must do to break what it watches. */
import type { LedgerFixture } from './ledger-fixture.ts'

/** What a violation works on. */
export interface BrokenSubjects {
  readonly fixture: LedgerFixture
  /** Runs statements past every trigger and foreign key. */
  readonly unguarded: (...statements: string[]) => Promise<void>
}

/** The violations, by the name of the check. */
export const subjectsViolations: Readonly<
  Record<string, (broken: BrokenSubjects) => Promise<unknown>>
> = {
  // a watcher that has not run for ten minutes
  entitlement_end_untold: ({ unguarded }) =>
    unguarded(
      `update hookledger.migrations set applied_at = now() - interval '1 day'`,
      `update hookledger.ledger_decisions set decided_at = now() - interval '1 hour'`,
      `update hookledger.entitlements set valid_until = now() - interval '10 minutes'`,
    ),
  entitlement_change_untold: ({ fixture }) =>
    fixture.sql(
      `insert into hookledger.entitlement_changes (subject, because, changed_at) values ('user:1', 'grant', now() - interval '10 minutes')`,
    ),
  // written by hand, past the doors
  link_unexplained: ({ fixture }) =>
    fixture.sql(
      `insert into hookledger.customer_links (source_id, customer_id, subject, linked_at) values (1, 'cus_1', 'user:1', now())`,
    ),
  merge_unexplained: ({ fixture }) =>
    fixture.sql(
      `insert into hookledger.subject_merges (from_subject, into_subject, act_id) values ('user:1', 'user:2', 0)`,
    ),
}
