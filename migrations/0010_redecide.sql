-- Deciding anew: the body of an event whose decision a person questions.

-- The body of an event that was skipped or contradicted, for whoever decides it anew: as with every reading
-- by a person, who and why are recorded before it is returned. Bodies of other events stay closed. Null when
-- it is no longer kept.
create function /* schema */redecidable_payload(key bigint, reason text, actor text) returns bytea
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select 1 from /* schema */ledger_decisions d
    where d.event_key = key and d.final and d.kind in ('skipped', 'contradicted')) then
    raise exception 'only what was skipped or contradicted is decided anew' using errcode = '22023';
  end if;
  return /* schema */read_payload(key, reason, actor);
end $$;
revoke execute on function /* schema */redecidable_payload(bigint, text, text) from public;
