-- What P4 also needs of the database: a decision that entitles names the state that does. Without it a
-- decision with no state would pass the foreign key, which is not asked where a column is null.

alter table /* schema */ledger_decisions add constraint ledger_decisions_entitles_check
  check (entitles is not true or (workflow is not null and to_state is not null and order_id is not null));
