/**
 * What each role may do, object by object. Columns are named wherever the whole row would be too much:
 * nobody but the owner reads a stored body, and time, transaction and role of a record are the
 * database's to write. A row lock needs the right to update something: then it is a column that decides nothing.
 */

/** A role that something runs as. */
export type RuntimeRole = 'receiver' | 'worker' | 'console' | 'privacy'

/** A right on an object of the schema. */
export type Right = readonly [
  right: string,
  kind: 'table' | 'sequence' | 'function',
  object: string,
]

const select = (...tables: string[]): Right[] => tables.map((table) => ['select', 'table', table])
const execute = (...functions: string[]): Right[] =>
  functions.map((name) => ['execute', 'function', name])

/** Bounded by what is stored as the retention: whoever may call them cannot have less kept. */
const upkeep = execute(
  'make_payload_partitions(integer)',
  'hold_payloads(integer, integer)',
  'drop_payload_partitions(integer)',
  'drop_identities(integer, integer)',
  'drop_rejections(integer)',
  'payload_state()',
  'drop_requests(integer)',
  'drop_evidence(integer, integer)',
)

/** Keeps who is signed in to the console: rows of people, of which whoever may write them may drop old ones. */
const sessions: readonly Right[] = [
  [
    'select, insert (token_sha256, actor, roles, expires_at), update (last_seen_at, ended_at, ended_by), delete',
    'table',
    'console_sessions',
  ],
  ['select, insert (browser_sha256, state, nonce, verifier), delete', 'table', 'console_sign_ins'],
  ...execute('console_secret()'),
]

/** Takes deliveries in, and cannot read, change or remove what it took in. */
const receiver: readonly Right[] = [
  ['select (migration_id, runs_from)', 'table', 'migrations'],
  ['select (environment)', 'table', 'installation'],
  [
    'select (source_id, provider, provider_account, environment), insert (provider, provider_account, environment)',
    'table',
    'sources',
  ],
  ['select (event_key, source_id, event_id)', 'table', 'inbox_events'],
  [
    'insert (source_id, event_id, event_type, occurred_at, api_version, body_sha256, body_bytes, trace)',
    'table',
    'inbox_events',
  ],
  ['insert (event_key, received_on, body)', 'table', 'payloads'],
  ['insert (event_key, received_on)', 'table', 'inbox_ready'],
  ['insert (source_id, event_id, body_sha256)', 'table', 'deliveries'],
  ['insert (source_id, event_id)', 'table', 'inbox_redeliveries'],
  // what is known of a duplicate
  ['select (event_key, final, kind)', 'table', 'ledger_decisions'],
  // counters of what was refused: no evidence of anything
  [
    'select (source, reason, minute, times, last_at), insert (source, reason, times), update (times, last_at)',
    'table',
    'rejections',
  ],
  ...upkeep,
]

/** The record of everything, which worker and console read; no table of bodies is among them. */
const records = select(
  'migrations',
  'sources',
  'inbox_events',
  'deliveries',
  'inbox_ready',
  'inbox_delayed',
  'inbox_deferred',
  'inbox_waits',
  'inbox_ignored',
  'inbox_dead',
  'inbox_rearmed',
  'inbox_redeliveries',
  'inbox_batches',
  'inbox_suspects',
  'inbox_gathers',
  'looked_at',
  'fetches',
  'fetch_budgets',
  'mirrored_objects',
  'rejections',
  'workflow_states',
  'workflow_versions',
  'ledger_decisions',
  'orders',
  'order_names',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'entitlement_rules',
  'customer_links',
  'subject_merges',
  'entitlement_watch',
  'entitlement_ends',
  'entitlement_changes',
  'findings',
  'reconciliation_checkpoints',
  'reconciliation_runs',
  'repairs',
  'operator_acts',
  'bulk_acts',
  'bulk_items',
  'erasures',
  'erased_events',
  'processes',
  'shadow_workflows',
  'shadow_comparisons',
  'shadow_differences',
  'retention',
  'webhook_inbox',
  'decisions',
  'payments',
  'current_entitlements',
)

/** Operations without their requests, attempts without what was answered. */
const operations: readonly Right[] = [
  ...select('outbox_operations', 'outbox_attempts', 'outbox_destinations', 'outbox_wakes'),
  [
    'select (attempt_id, outcome, status, error, receipt, late, answered_at)',
    'table',
    'outbox_answers',
  ],
  [
    'select (operation_id, destination, state, key_generation, attempts, next_attempt_at, order_id, decision_id, receipt, effect_type, effect_reference, name, promise, request_sha256, created_at, first_attempt_at, uncertain_since, last_error, finished_at)',
    'table',
    'outbox',
  ],
]

/** Which bodies and requests are kept, without them. */
const keptBodies: readonly Right[] = [
  ['select (event_key, received_on)', 'table', 'payloads'],
  ['select (event_key, held_at)', 'table', 'payloads_held'],
  ['select (operation_id)', 'table', 'outbox_requests'],
  [
    'select (evidence_id, order_id, source_id, kind, object_id, number, workflow, event_key, order_version, is_found, is_late, requested_at, fetched_at, body_sha256, body_bytes)',
    'table',
    'evidence',
  ],
  ...execute('is_evidence_intact(bigint)'),
  ...execute('is_payload_intact(bigint)', 'payload_state()', 'is_request_intact(uuid)'),
]

const decisionColumns =
  'decision_id, event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, workflow_version, actor, attempts, supersedes'

/** Decides and records. It adds to the ledger and takes nothing from it; bodies come from `claimed_events`. */
const worker: readonly Right[] = [
  ...records,
  ...operations,
  ...keptBodies,
  ...select('installation'),
  ['insert, delete, update (overdue)', 'table', 'inbox_ready'],
  ['insert, delete, update (overdue)', 'table', 'inbox_delayed'],
  ['insert, delete, update (overdue)', 'table', 'inbox_deferred'],
  ['insert, delete', 'table', 'inbox_waits'],
  ['insert, delete, update (ignored_at)', 'table', 'inbox_ignored'],
  ['insert, delete, update (died_at)', 'table', 'inbox_dead'],
  ['insert, update (rearmed_at)', 'table', 'inbox_rearmed'],
  ['delete, update (event_id)', 'table', 'inbox_redeliveries'],
  ['insert, delete, update (started_at)', 'table', 'inbox_batches'],
  ['insert, delete, update (seen_at)', 'table', 'processes'],
  ['insert, delete, update (starts, attempts, due_at)', 'table', 'inbox_suspects'],
  // what is asked of providers, and what they answered: written here, read back while it stands
  [
    'insert, delete, update (order_id, source_id, kind, object_id, wanted, waiting, tries, asked_at, attempts, deadline_at, waits_for, overdue)',
    'table',
    'inbox_gathers',
  ],
  [
    'insert, delete, update (sent, answered, applied, evidence_id, answered_at, applied_by, checked_at)',
    'table',
    'looked_at',
  ],
  [
    'insert, delete, update (workflow, event_type, event_key, wanted, asked_at, due_at, leased_until, attempts, last_error, told)',
    'table',
    'fetches',
  ],
  ['insert, update, delete', 'table', 'fetch_budgets'],
  [
    'insert (order_id, source_id, kind, object_id, number, workflow, event_key, order_version, is_found, is_late, requested_at, fetched_at, body_sha256, body_bytes, body), update (is_late)',
    'table',
    'evidence',
  ],
  ...execute('newest_answers(bigint[], bigint)', 'gathered_payloads(bigint[])'),
  ['delete', 'table', 'rejections'],
  ['insert', 'table', 'workflow_states'],
  ['insert, update (last_registered_at, retired_at)', 'table', 'workflow_versions'],
  ['insert, update (combine)', 'table', 'entitlement_rules'],
  [`insert (${decisionColumns})`, 'table', 'ledger_decisions'],
  ['usage', 'sequence', 'ledger_decisions_decision_id_seq'],
  [
    'insert (order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)',
    'table',
    'fulfillment_effects',
  ],
  ['insert, update (applied, decision_id)', 'table', 'ledger_payments'],
  [
    'insert, delete, update (workflow, state, subject, source_id, provider_account, expected_amount, currency, version, updated_at)',
    'table',
    'orders',
  ],
  ['insert, update (order_id)', 'table', 'order_names'],
  [
    'insert, update (quantity, valid_until, active, stated, granted_by, changed_by, version)',
    'table',
    'entitlements',
  ],
  [
    'insert, update (state, owner, order_id, event_key, evidence, due_at, last_seen_at, closed_at, times_seen, source_id, reference, dismissed_until, dismissed_evidence, closed_because, escalations)',
    'table',
    'findings',
  ],
  ['insert (act, target, reason, actor, details)', 'table', 'operator_acts'],
  // acts on many at once: what was planned is added and never changed
  [
    'insert (bulk_id, act, filter, details, targets, reason, actor, needs_approval), update (state, started_at, approved_by, approved_at, ended_by, finished_at, done, unchanged, failed)',
    'table',
    'bulk_acts',
  ],
  [
    'insert (bulk_id, number, target, was), update (state, code, message, answered_at)',
    'table',
    'bulk_items',
  ],
  // what subjects are, and who is told of what they may use; merges lock their table
  [
    'insert (source_id, customer_id, subject), update (subject, linked_at, act_id)',
    'table',
    'customer_links',
  ],
  ['insert, update', 'table', 'subject_merges'],
  ['update (through)', 'table', 'entitlement_watch'],
  ['insert (valid_until, order_id, subject, entitlement), delete', 'table', 'entitlement_ends'],
  [
    'insert (subject, order_id, decision_id, because, entitlement, ended_at), delete, update (changed_at)',
    'table',
    'entitlement_changes',
  ],
  ['usage', 'sequence', 'entitlement_telling_seq'],
  ['insert (workflow), update (since, ended_at)', 'table', 'shadow_workflows'],
  ['insert, update (compared_at, subjects, differences, too_young)', 'table', 'shadow_comparisons'],
  [
    'insert, delete, update (kind, here, there, order_ids, last_seen_at)',
    'table',
    'shadow_differences',
  ],
  // how far a provider's records were looked at, and what each pass saw; repairs are added, and verified once
  [
    'insert (source_id, kind, through), update (through, version, window_from, window_to, slice_from, slice_to, cursor, run_id, deep_at, moved_at)',
    'table',
    'reconciliation_checkpoints',
  ],
  [
    'insert (run_id, source, how, actor), update (state, coverage, calls, injected, opened, closed, repaired, error, seen_at, compared_at, finished_at), delete',
    'table',
    'reconciliation_runs',
  ],
  [
    'insert (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state, decision_id), update (verified_at)',
    'table',
    'repairs',
  ],
  ['update (payload_days, identity_days, changed_at)', 'table', 'retention'],
  [
    'insert (operation_id, destination, order_id, effect_type, effect_reference, name, decision_id, request_sha256, request_bytes, while_states, promise, window_ms, trace)',
    'table',
    'outbox_operations',
  ],
  [
    'update (state, key_generation, attempts, calls, lookups, flagged, next_attempt_at, first_attempt_at, uncertain_since, lease, leased_until, leased_by, receipt, last_error, finished_at)',
    'table',
    'outbox_operations',
  ],
  ['insert (operation_id, request)', 'table', 'outbox_requests'],
  [
    'insert (operation_id, number, kind, key_generation, lease, dispatcher)',
    'table',
    'outbox_attempts',
  ],
  ['insert (attempt_id, outcome, status, error, answer, late, receipt)', 'table', 'outbox_answers'],
  [
    'insert (destination, promise, window_ms), update (promise, window_ms, under_way, failures, closed_until, tokens, refilled_at)',
    'table',
    'outbox_destinations',
  ],
  ['insert (order_id), delete, update (order_id)', 'table', 'outbox_wakes'],
  ['usage', 'sequence', 'outbox_lease_seq'],
  ...execute('claimed_events(bigint[])', 'claimed_payloads(bigint[])', 'locked_orders(text[])'),
  // events that did not come as a delivery: made from a provider's records, or acts of persons
  ['insert (provider, provider_account, environment)', 'table', 'sources'],
  [
    'insert (source_id, event_id, event_type, via, occurred_at, api_version, body_sha256, body_bytes)',
    'table',
    'inbox_events',
  ],
  ['insert (event_key, received_on, body)', 'table', 'payloads'],
  // recorded like every reading by a person, and only of what is decided anew
  ...execute('redecidable_payload(bigint, text, text)'),
  // the bytes of what it holds a lease of, and of nothing else
  ...execute(
    'leased_requests(bigint[])',
    'unpark_orders(text, text[])',
    'dispatch_round(text, text, integer, double precision, integer, integer, timestamptz, boolean, uuid[], bigint[], bigint[], integer[], text[], text[], text[])',
  ),
  ...upkeep,
]

/** Looks at everything but bodies and the secret of the installation, and changes nothing. */
const consoleRights: readonly Right[] = [
  ...records,
  ...operations,
  ...keptBodies,
  ...select('payload_reads', 'operation_reads'),
  ...sessions,
  ['select (one_row, installation_id, environment, created_at)', 'table', 'installation'],
]

/** Finds an event or an operation and reads its body, which is recorded. */
const privacy: readonly Right[] = [
  ...select('migrations', 'sources', 'inbox_events', 'webhook_inbox', 'payload_reads'),
  ...select('outbox_operations', 'outbox_attempts', 'operation_reads'),
  ['select (one_row, installation_id, environment, created_at)', 'table', 'installation'],
  ...execute('read_payload(bigint, text, text)', 'payload_state()'),
  [
    'select (evidence_id, order_id, source_id, kind, object_id, number, workflow, event_key, is_found, fetched_at, body_sha256, body_bytes)',
    'table',
    'evidence',
  ],
  ...execute('read_evidence(bigint, text, text)'),
  ...execute('read_operation(uuid, text, text)'),
  // whoever may erase reads nothing by it but counts and ids
  ...execute('erase_subject(text, text[], text, text, boolean, boolean)'),
  ...select('erasures', 'erased_events'),
]

/** The rights of each role. */
export const runtimeRights: Readonly<Record<RuntimeRole, readonly Right[]>> = {
  receiver,
  worker,
  console: consoleRights,
  privacy,
}
