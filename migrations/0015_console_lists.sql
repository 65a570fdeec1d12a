-- What lists go by that nothing went by before. Deliveries grow in the order of their numbers, so that a few bytes
-- for each range of pages find them: a write pays nothing for it.
create index deliveries_delivery_idx on /* schema */deliveries using brin (delivery_id)
  with (pages_per_range = 16, autosummarize = on);
-- one entry an order, written once: the moment never changes
create index orders_opened_order_idx on /* schema */orders (opened_at desc, order_id);
create index findings_seen_idx on /* schema */findings (first_seen_at desc, finding_id);
create index reconciliation_runs_all_idx on /* schema */reconciliation_runs (started_at desc, run_id);
create index repairs_applied_idx on /* schema */repairs (applied_at desc, repair_id);
-- the newest operations whatever their state: one entry for each version of a row, at the end of the index
create index outbox_operations_sequence_idx on /* schema */outbox_operations (sequence);
-- effects and payments in the order of their decisions: one entry for each, at the end of the index, never changed
create index fulfillment_effects_decision_idx on /* schema */fulfillment_effects (decision_id);
create index ledger_payments_decision_idx on /* schema */ledger_payments (decision_id);
-- what somebody types to find an invoice's effect; most effects have no reference, and no entry
create index fulfillment_effects_reference_idx on /* schema */fulfillment_effects (effect_reference)
  where effect_reference <> '';
-- findings that name no order, which say in words for which one they were meant
create index findings_unowned_idx on /* schema */findings (event_key) where event_key is not null and order_id is null;
