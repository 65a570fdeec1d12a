-- Erasure: bodies, evidence, requests and answers about a subject go, and its name becomes a pseudonym wherever it
-- stands. Ids, hashes and decisions stay. It is the one recorded exception from "append-only": a transaction that
-- has written a row of `erasures`, which only the function below can, may change the texts of rows, and nothing else.

create table /* schema */erasures (
  erasure_id uuid not null,
  pseudonym text collate "C" not null,
  reason text not null,
  actor text not null,
  database_role text not null default session_user,
  erased_at timestamptz not null default now(),
  xid xid8 not null default pg_current_xact_id(),
  constraint erasures_pkey primary key (erasure_id),
  constraint erasures_reason_check check (reason <> ''),
  constraint erasures_actor_check check (actor <> '')
);

-- the tombstone of a body: why it is gone, while its identity and hash stay
create table /* schema */erased_events (
  event_key bigint not null,
  erasure_id uuid not null,
  constraint erased_events_pkey primary key (event_key)
);

-- as before, but for an update in the transaction of an erasure; what that may change is guarded row by row below
create or replace function /* schema */refuse_change() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and tg_level = 'STATEMENT'
    and exists (select from /* schema */erasures e where e.xid = pg_current_xact_id()) then
    return null;
  end if;
  raise exception '% is append-only: record a new row instead', tg_table_name using errcode = '42501';
end $$;

create function /* schema */refuse_all_but_texts() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
  texts constant text[] := coalesce(tg_argv::text[], '{}');
begin
  if to_jsonb(new) - texts is distinct from to_jsonb(old) - texts then
    raise exception '% is append-only: an erasure changes texts, and nothing else', tg_table_name using errcode = '42501';
  end if;
  return new;
end $$;
revoke execute on function /* schema */refuse_all_but_texts() from public;

create trigger ledger_decisions_texts before update on /* schema */ledger_decisions
  for each row execute function /* schema */refuse_all_but_texts('reason', 'evidence');
create trigger fulfillment_effects_texts before update on /* schema */fulfillment_effects
  for each row execute function /* schema */refuse_all_but_texts('data');
create trigger operator_acts_texts before update on /* schema */operator_acts
  for each row execute function /* schema */refuse_all_but_texts('target', 'reason', 'details');
create trigger payload_reads_texts before update on /* schema */payload_reads
  for each row execute function /* schema */refuse_all_but_texts('reason');
create trigger operation_reads_texts before update on /* schema */operation_reads
  for each row execute function /* schema */refuse_all_but_texts('reason');
create trigger outbox_attempts_texts before update on /* schema */outbox_attempts
  for each row execute function /* schema */refuse_all_but_texts();
create trigger outbox_answers_texts before update on /* schema */outbox_answers
  for each row execute function /* schema */refuse_all_but_texts('error', 'answer', 'receipt');
create trigger erasures_append_only before update or delete or truncate on /* schema */erasures
  for each statement execute function /* schema */refuse_change();
create trigger erasures_texts before update on /* schema */erasures
  for each row execute function /* schema */refuse_all_but_texts();
create trigger erased_events_append_only before update or delete or truncate on /* schema */erased_events
  for each statement execute function /* schema */refuse_change();
create trigger erased_events_texts before update on /* schema */erased_events
  for each row execute function /* schema */refuse_all_but_texts();

create or replace function /* schema */refuse_repair_change() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.verified_at is null and new.verified_at is not null
    and to_jsonb(new) - 'verified_at' = to_jsonb(old) - 'verified_at' then
    return new;
  end if;
  if tg_op = 'UPDATE'
    and to_jsonb(new) - '{plan,reason,previous_state,new_state}'::text[] = to_jsonb(old) - '{plan,reason,previous_state,new_state}'::text[]
    and exists (select from /* schema */erasures e where e.xid = pg_current_xact_id()) then
    return new;
  end if;
  raise exception 'repairs is append-only: record a new row instead' using errcode = '42501';
end $$;

-- Whether a name can be looked for in prose and in bodies: a number or a very short word stands there for other things.
create function /* schema */is_telling(name text) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select char_length(name) >= 4 and name ~ '[^0-9]'
$$;

-- A pattern for a name as a word of its own: `user:4` is no part of `user:42`, nor of `user:4.1` or `a.user:4`.
create function /* schema */word_pattern(name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select '(?<![[:alnum:]_@]|[[:alnum:]_][.-])' || regexp_replace(name, '([\\.^$*+?(){}\[\]|\-])', '\\\1', 'g')
    || '(?![[:alnum:]_@]|[.:/-][[:alnum:]_])'
$$;

-- A text with every name replaced. `exact` is for what other records are compared with (`user:42 team`): only a text
-- that is the name, or begins with it and a space, and only the first `subjects` of the names.
create function /* schema */erased_text(value text, names text[], pseudonyms text[], subjects integer, exact boolean) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  changed text := value;
begin
  if value is null then return null; end if;
  for i in 1 .. cardinality(names) loop
    if exact then
      if i <= subjects and (value = names[i] or starts_with(value, names[i] || ' ')) then
        return pseudonyms[i] || substr(value, char_length(names[i]) + 1);
      end if;
    elsif position(names[i] in changed) > 0 then
      if /* schema */is_telling(names[i]) then
        changed := regexp_replace(changed collate "C", /* schema */word_pattern(names[i]), pseudonyms[i], 'g');
      elsif i <= subjects and value = names[i] then
        return pseudonyms[i];
      end if;
    end if;
  end loop;
  return changed;
end $$;

-- The same for every text in a document, keys too, but for the plain words that are fields of ours; numbers stay as they are.
create function /* schema */erased_json(value jsonb, names text[], pseudonyms text[], subjects integer, field text) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  exact constant boolean := field in ('granted', 'revoked', 'stated', 'subject', 'into', 'from', 'before');
begin
  if value is null then return null; end if;
  if jsonb_typeof(value) = 'object' then
    return coalesce((select jsonb_object_agg(
        case when field is null and e.key ~ '^[a-z_]+$' then e.key else /* schema */erased_text(e.key, names, pseudonyms, subjects, exact) end,
        /* schema */erased_json(e.value, names, pseudonyms, subjects, e.key))
      from jsonb_each(value) e), '{}');
  elsif jsonb_typeof(value) = 'array' then
    return coalesce((select jsonb_agg(/* schema */erased_json(e.value, names, pseudonyms, subjects, coalesce(field, '')) order by e.n)
      from jsonb_array_elements(value) with ordinality e(value, n)), '[]');
  elsif jsonb_typeof(value) = 'string' and (exact or field is null or field not in ('order', 'order_id', 'orders', 'name', 'names')) then
    return to_jsonb(/* schema */erased_text(value #>> '{}', names, pseudonyms, subjects, exact));
  end if;
  return value;
end $$;

-- Whether stored bytes hold one of these texts as a word of its own. Bytes of any kind: they need not be text.
create function /* schema */holds_word(bytes bytea, texts text[]) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  word text;
begin
  foreach word in array texts loop
    if position(convert_to(word, 'UTF8') in bytes) > 0
      and encode(bytes, 'escape') collate "C" ~ /* schema */word_pattern(encode(convert_to(word, 'UTF8'), 'escape')) then
      return true;
    end if;
  end loop;
  return false;
end $$;

revoke execute on function /* schema */is_telling(text) from public;
revoke execute on function /* schema */word_pattern(text) from public;
revoke execute on function /* schema */erased_text(text, text[], text[], integer, boolean) from public;
revoke execute on function /* schema */erased_json(jsonb, text[], text[], integer, text) from public;
revoke execute on function /* schema */holds_word(bytea, text[]) from public;

-- What an erasure concerns: the subject with what was merged into it, its orders, their events and operations, and
-- every kept body, request and answer in which it, one of the other texts or a customer of it is found. Reads all of them.
create function /* schema */erasure_scope(asked text, also text[], out subjects text[], out order_ids text[],
  out event_keys bigint[], out operation_ids uuid[], out evidence_ids bigint[])
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  words text[];
  ids text[];
begin
  select array_agg(n.subject order by n.subject <> asked, n.subject) into subjects from (
    select asked as subject union select m.from_subject from /* schema */subject_merges m where m.into_subject = asked) n;
  select coalesce(array_agg(o.order_id order by o.order_id), '{}') into order_ids from (
    select r.order_id from /* schema */orders r where r.subject = any (subjects)
    union select e.order_id from /* schema */entitlements e where e.subject = any (subjects)) o;
  select coalesce(array_agg(distinct w.word), '{}') into words from (
    select k.word from unnest(subjects || also) as k(word) where /* schema */is_telling(k.word)
    union select l.customer_id from /* schema */customer_links l
      where l.subject = any (subjects) and /* schema */is_telling(l.customer_id)) k
    -- as JSON may write it
    cross join lateral (values (k.word), (trim('"' from to_json(k.word)::text)), (replace(k.word, '/', '\/'))) as w(word);
  -- an event that nobody has looked at yet may say no more than the order
  select coalesce(array_agg(i.id), '{}') into ids from (
    select n.name as id from /* schema */order_names n where n.order_id = any (order_ids)
    union select unnest(order_ids)) i where char_length(i.id) >= 8;
  select coalesce(array_agg(e.event_key order by e.event_key), '{}') into event_keys from (
    select d.event_key from /* schema */ledger_decisions d where d.order_id = any (order_ids)
    union select g.event_key from /* schema */inbox_gathers g where g.order_id = any (order_ids)
    union select v.event_key from /* schema */evidence v where v.order_id = any (order_ids)
    union select f.event_key from /* schema */findings f where f.order_id = any (order_ids)
    union select w.event_key from /* schema */inbox_waits w where w.kind = 'order' and w.source_id = 0 and w.name = any (order_ids)
    union select w.event_key from /* schema */customer_links l join /* schema */inbox_waits w
      on w.kind = 'customer' and w.source_id = l.source_id and w.name = l.customer_id where l.subject = any (subjects)
    union select p.event_key from /* schema */payloads p where /* schema */holds_word(p.body, words)
    union select h.event_key from /* schema */payloads_held h where /* schema */holds_word(h.body, words)
    union select p.event_key from (
        select event_key, received_on from /* schema */inbox_ready
        union all select event_key, received_on from /* schema */inbox_delayed
        union all select event_key, received_on from /* schema */inbox_suspects) u
      join /* schema */payloads p on p.event_key = u.event_key and p.received_on = u.received_on
      where /* schema */holds_word(p.body, ids)) e
  where e.event_key is not null;
  select coalesce(array_agg(o.operation_id order by o.operation_id), '{}') into operation_ids from (
    select p.operation_id from /* schema */outbox_operations p where p.order_id = any (order_ids)
    union select r.operation_id from /* schema */outbox_requests r where /* schema */holds_word(r.request, words)
    -- what the app sent has no order, and its request may be gone while what was answered stays
    union select t.operation_id from /* schema */outbox_answers w join /* schema */outbox_attempts t on t.attempt_id = w.attempt_id
      where /* schema */holds_word(w.answer, words)) o;
  select coalesce(array_agg(v.evidence_id order by v.evidence_id), '{}') into evidence_ids from /* schema */evidence v
  where v.body is not null
    and (v.order_id = any (order_ids) or v.event_key = any (event_keys) or /* schema */holds_word(v.body, words));
end $$;
revoke execute on function /* schema */erasure_scope(text, text[]) from public;

-- What has to come to its end first, as rows of a report. Ignored events are finished.
create function /* schema */erasure_unfinished(subjects text[], event_keys bigint[], operation_ids uuid[])
returns table (kind text, id text, state text, can_give_up boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'event', 'event:' || u.event_key, u.state, u.can_give_up from (
    select event_key, 'pending' as state, false as can_give_up from /* schema */inbox_ready
    union all select event_key, 'pending', false from /* schema */inbox_delayed
    union all select event_key, 'pending', false from /* schema */inbox_suspects
    union all select event_key, 'pending', false from /* schema */inbox_gathers where waiting
    union all select event_key, 'deferred', true from /* schema */inbox_deferred
    union all select event_key, 'dead', true from /* schema */inbox_dead) u
  where u.event_key = any (event_keys)
    and not exists (select from /* schema */ledger_decisions d where d.event_key = u.event_key and d.final)
  union all
  select 'operation', o.operation_id::text, o.state, false from /* schema */outbox_operations o
  where o.operation_id = any (operation_ids) and o.state in ('pending', 'sending', 'uncertain', 'dead')
  union all
  select 'change', 'change:' || c.change_id, 'untold', false from /* schema */entitlement_changes c
  where c.subject = any (subjects)
$$;
revoke execute on function /* schema */erasure_unfinished(text[], bigint[], uuid[]) from public;

-- Waiting and dead events that would need their bodies are ignored from here on, with a decision that says why.
create function /* schema */give_up_events(keys bigint[], why text, who text) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  given bigint[];
begin
  with waiting as (
    delete from /* schema */inbox_deferred w where w.event_key = any (keys) returning w.event_key, w.received_on
  ), dead as (
    delete from /* schema */inbox_dead x where x.event_key = any (keys) returning x.event_key, x.received_on
  ), gone as (
    select * from waiting union select * from dead
  ), ignored as (
    insert into /* schema */inbox_ignored (event_key, received_on, reason, event_type)
    select g.event_key, g.received_on, 'given up: its body was erased', e.event_type
    from gone g join /* schema */inbox_events e on e.event_key = g.event_key
    on conflict (event_key) do nothing returning event_key
  )
  select array_agg(event_key) into given from ignored;
  delete from /* schema */inbox_waits w where w.event_key = any (given);
  insert into /* schema */ledger_decisions (event_key, order_id, kind, final, reason, actor)
  select k.event_key, (select d.order_id from /* schema */ledger_decisions d
      where d.event_key = k.event_key and not d.final order by d.decision_id desc limit 1), 'ignored', false, why, who
  from unnest(given) as k(event_key) order by k.event_key;
  update /* schema */findings f set state = 'closed', closed_at = now(), closed_because = 'the event was given up'
  where f.event_key = any (given) and f.state in ('open', 'repairing') and f.kind in ('dead_event', 'wait_overdue');
  return coalesce(cardinality(given), 0);
end $$;
revoke execute on function /* schema */give_up_events(bigint[], text, text) from public;

-- The texts of all records that may hold a name, whomever they are about. Ids stay. What a person typed for a whole file
-- of adopted orders stays too: it is how their decisions and the act find one another.
create function /* schema */erase_names(names text[], pseudonyms text[], subjects integer)
returns void language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- where a name may stand, as text and as JSON writes it: only there is looked more closely. One that tells nothing
  -- by itself counts only where it is the whole of a text, or its beginning before a space.
  patterns constant text[] := array(
    select replace(p.pattern, '?', replace(replace(replace(w.word, '\', '\\'), '%', '\%'), '_', '\_'))
    from unnest(names) as k(name) cross join lateral (values (k.name), (trim('"' from to_json(k.name)::text))) as w(word)
    cross join lateral unnest(case when /* schema */is_telling(k.name) then array['%?%']
      else array['?', 'subject:?', '%"?"%', '%"? %'] end) as p(pattern));
begin
  update /* schema */ledger_decisions d set reason = n.reason, evidence = n.evidence
  from (
    select o.decision_id, case when o.kind = 'adopted' then o.reason else /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) end as reason,
      /* schema */erased_json(o.evidence, names, pseudonyms, subjects, null) as evidence
    from /* schema */ledger_decisions o where o.reason like any (patterns) or o.evidence::text like any (patterns)) n
  where n.decision_id = d.decision_id and (d.reason, d.evidence) is distinct from (n.reason, n.evidence);
  update /* schema */fulfillment_effects f set data = n.data
  from (
    select o.order_id, o.effect_type, o.effect_reference, /* schema */erased_json(o.data, names, pseudonyms, subjects, null) as data
    from /* schema */fulfillment_effects o where o.data::text like any (patterns)) n
  where n.order_id = f.order_id and n.effect_type = f.effect_type and n.effect_reference = f.effect_reference
    and f.data is distinct from n.data;
  update /* schema */operator_acts a set target = n.target, reason = n.reason, details = n.details
  from (
    select o.act_id, case when o.target like 'subject:%' then 'subject:' || /* schema */erased_text(substr(o.target, 9), names, pseudonyms, subjects, true)
        else o.target end as target,
      case when o.act in ('adopt', 'shadow end') then o.reason else /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) end as reason,
      /* schema */erased_json(o.details, names, pseudonyms, subjects, null) as details
    from /* schema */operator_acts o where o.target like any (patterns) or o.reason like any (patterns) or o.details::text like any (patterns)) n
  where n.act_id = a.act_id and (a.target, a.reason, a.details) is distinct from (n.target, n.reason, n.details);
  update /* schema */payload_reads r set reason = n.reason
  from (
    select o.read_id, /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason
    from /* schema */payload_reads o where o.reason like any (patterns)) n
  where n.read_id = r.read_id and r.reason is distinct from n.reason;
  update /* schema */operation_reads r set reason = n.reason
  from (
    select o.read_id, /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason
    from /* schema */operation_reads o where o.reason like any (patterns)) n
  where n.read_id = r.read_id and r.reason is distinct from n.reason;
  update /* schema */repairs r set plan = n.plan, reason = n.reason, previous_state = n.previous_state, new_state = n.new_state
  from (
    select o.repair_id, /* schema */erased_json(o.plan, names, pseudonyms, subjects, null) as plan,
      /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason,
      /* schema */erased_json(o.previous_state, names, pseudonyms, subjects, null) as previous_state,
      /* schema */erased_json(o.new_state, names, pseudonyms, subjects, null) as new_state
    from /* schema */repairs o where o.plan::text like any (patterns) or o.reason like any (patterns) or o.previous_state::text like any (patterns) or o.new_state::text like any (patterns)) n
  where n.repair_id = r.repair_id and (r.plan, r.reason, r.previous_state, r.new_state) is distinct from (n.plan, n.reason, n.previous_state, n.new_state);
  update /* schema */findings f set evidence = n.evidence, dismissed_evidence = n.dismissed_evidence, closed_because = n.closed_because
  from (
    select o.finding_id, /* schema */erased_json(o.evidence, names, pseudonyms, subjects, null) as evidence,
      /* schema */erased_json(o.dismissed_evidence, names, pseudonyms, subjects, null) as dismissed_evidence,
      /* schema */erased_text(o.closed_because, names, pseudonyms, subjects, false) as closed_because
    from /* schema */findings o where o.evidence::text like any (patterns) or o.dismissed_evidence::text like any (patterns) or o.closed_because like any (patterns)) n
  where n.finding_id = f.finding_id and (f.evidence, f.dismissed_evidence, f.closed_because) is distinct from (n.evidence, n.dismissed_evidence, n.closed_because);
  update /* schema */outbox_operations p set receipt = n.receipt, last_error = n.last_error
  from (
    select o.operation_id, /* schema */erased_json(o.receipt, names, pseudonyms, subjects, null) as receipt,
      /* schema */erased_text(o.last_error, names, pseudonyms, subjects, false) as last_error
    from /* schema */outbox_operations o where o.receipt::text like any (patterns) or o.last_error like any (patterns)) n
  where n.operation_id = p.operation_id and (p.receipt, p.last_error) is distinct from (n.receipt, n.last_error);
  update /* schema */outbox_answers w set error = n.error, receipt = n.receipt
  from (
    select o.attempt_id, /* schema */erased_text(o.error, names, pseudonyms, subjects, false) as error,
      /* schema */erased_json(o.receipt, names, pseudonyms, subjects, null) as receipt
    from /* schema */outbox_answers o where o.error like any (patterns) or o.receipt::text like any (patterns)) n
  where n.attempt_id = w.attempt_id and (w.error, w.receipt) is distinct from (n.error, n.receipt);
  update /* schema */bulk_acts b set reason = n.reason, filter = n.filter, details = n.details
  from (
    select o.bulk_id, /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason,
      /* schema */erased_json(o.filter, names, pseudonyms, subjects, null) as filter,
      /* schema */erased_json(o.details, names, pseudonyms, subjects, null) as details
    from /* schema */bulk_acts o where o.reason like any (patterns) or o.filter::text like any (patterns) or o.details::text like any (patterns)) n
  where n.bulk_id = b.bulk_id and (b.reason, b.filter, b.details) is distinct from (n.reason, n.filter, n.details);
  update /* schema */bulk_items i set message = n.message
  from (
    select o.bulk_id, o.number, /* schema */erased_text(o.message, names, pseudonyms, subjects, false) as message
    from /* schema */bulk_items o where o.message like any (patterns)) n
  where n.bulk_id = i.bulk_id and n.number = i.number and i.message is distinct from n.message;
  update /* schema */inbox_ignored i set reason = n.reason
  from (
    select o.event_key, /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason
    from /* schema */inbox_ignored o where o.reason like any (patterns)) n
  where n.event_key = i.event_key and i.reason is distinct from n.reason;
  update /* schema */inbox_dead x set reason = n.reason
  from (
    select o.event_key, /* schema */erased_text(o.reason, names, pseudonyms, subjects, false) as reason
    from /* schema */inbox_dead o where o.reason like any (patterns)) n
  where n.event_key = x.event_key and x.reason is distinct from n.reason;
  update /* schema */inbox_delayed d set last_error = n.last_error
  from (
    select o.event_key, /* schema */erased_text(o.last_error, names, pseudonyms, subjects, false) as last_error
    from /* schema */inbox_delayed o where o.last_error like any (patterns)) n
  where n.event_key = d.event_key and d.last_error is distinct from n.last_error;
  -- texts of errors that the provider or a workflow wrote
  update /* schema */fetches f set last_error = /* schema */erased_text(f.last_error, names, pseudonyms, subjects, false) where f.last_error like any (patterns);
  update /* schema */fetch_budgets f set last_error = /* schema */erased_text(f.last_error, names, pseudonyms, subjects, false) where f.last_error like any (patterns);
  update /* schema */reconciliation_runs r set error = /* schema */erased_text(r.error, names, pseudonyms, subjects, false) where r.error like any (patterns);
end $$;
revoke execute on function /* schema */erase_names(text[], text[], integer) from public;

-- The plan (`apply` false: nothing is written), or the act. What is not finished is in the report, and then nothing
-- was done. Nobody is told which subject it was: the server's log has the pseudonym.
create function /* schema */erase_subject(asked text, also text[], reason text, actor text, give_up boolean, apply boolean)
returns jsonb language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  merged_into text;
  scope record;
  names text[];
  pseudonyms text[];
  how_many integer;
  erasure uuid := gen_random_uuid();
  why text;
  act bigint;
  given_up integer := 0;
  counts jsonb;
  report jsonb;
begin
  if apply and (coalesce(btrim(reason), '') = '' or coalesce(btrim(actor), '') = '') then
    raise exception 'an erasure needs a reason and an actor' using errcode = '22023';
  end if;
  if apply then
    -- no merge, and no second erasure, meanwhile
    lock table /* schema */subject_merges in share row exclusive mode;
    lock table /* schema */erasures in share row exclusive mode;
  end if;
  select m.into_subject into merged_into from /* schema */subject_merges m where m.from_subject = asked;
  if merged_into is not null then return jsonb_build_object('problem', 'merged', 'into', merged_into); end if;
  if apply then
    -- workers leave locked orders alone; what is found below is what they had committed before
    perform from /* schema */orders o where o.order_id in (
      select r.order_id from /* schema */orders r where r.subject = asked
        or r.subject in (select m.from_subject from /* schema */subject_merges m where m.into_subject = asked)
      union select e.order_id from /* schema */entitlements e where e.subject = asked
        or e.subject in (select m.from_subject from /* schema */subject_merges m where m.into_subject = asked))
    order by o.order_id for no key update;
  end if;
  select * into scope from /* schema */erasure_scope(asked, also);
  if cardinality(scope.order_ids) = 0 and cardinality(scope.event_keys) = 0 and cardinality(scope.operation_ids) = 0
    and cardinality(scope.evidence_ids) = 0 and cardinality(scope.subjects) = 1
    and not exists (select from /* schema */customer_links l where l.subject = asked)
    and not exists (select from /* schema */shadow_differences d where d.subject = asked) then
    return jsonb_build_object('problem', 'unknown');
  end if;
  how_many := cardinality(scope.subjects);
  -- longer names first: one may be the beginning of another
  select array_agg(n.name order by n.is_other, char_length(n.name) desc, n.name),
    array_agg(n.pseudonym order by n.is_other, char_length(n.name) desc, n.name)
  into names, pseudonyms from (
    select k.name, false as is_other,
      -- records that cannot be compared since a name is written in another way there stay known as such
      'erased:' || case when position('\' in k.name) > 0 then '\' else '' end
        || case when k.name = asked then erasure else gen_random_uuid() end as pseudonym
    from unnest(scope.subjects) as k(name)
    union all select distinct a.word, true, 'erased:' || erasure from unnest(also) as a(word) where not a.word = any (scope.subjects)) n;
  select jsonb_build_object(
    'orders', cardinality(scope.order_ids),
    'events', cardinality(scope.event_keys),
    'bodies', (select count(*) from /* schema */payloads p where p.event_key = any (scope.event_keys))
      + (select count(*) from /* schema */payloads_held h where h.event_key = any (scope.event_keys)),
    'evidence', cardinality(scope.evidence_ids),
    'requests', (select count(*) from /* schema */outbox_requests r where r.operation_id = any (scope.operation_ids)),
    'answers', (select count(*) from /* schema */outbox_attempts t join /* schema */outbox_answers w on w.attempt_id = t.attempt_id
      where t.operation_id = any (scope.operation_ids) and w.answer is not null),
    'decisions', (select count(*) from /* schema */ledger_decisions d where d.order_id = any (scope.order_ids))) into counts;
  report := counts || jsonb_build_object(
    'subjects', to_jsonb(scope.subjects),
    'order_ids', to_jsonb(scope.order_ids[1:100]),
    'active', coalesce((select jsonb_agg(jsonb_build_object('order_id', e.order_id, 'entitlement', e.entitlement)
        order by e.order_id, e.entitlement)
      from (select t.order_id, t.entitlement from /* schema */entitlements t
        where t.subject = any (scope.subjects) and t.active and (t.valid_until is null or t.valid_until > now())
        order by t.order_id, t.entitlement limit 100) e), '[]'),
    'kept_ids', coalesce((select jsonb_agg(i.id order by i.id) from (
      select k.id from (
        select unnest(scope.order_ids) as id
        union select n.name from /* schema */order_names n where n.order_id = any (scope.order_ids)
        union select f.effect_reference from /* schema */fulfillment_effects f where f.order_id = any (scope.order_ids)
        union select o.name from /* schema */outbox_operations o where o.operation_id = any (scope.operation_ids)) k
      where exists (select from unnest(names) as n(name) where position(n.name in k.id) > 0) order by k.id limit 20) i), '[]'),
    'unfinished', coalesce((select jsonb_agg(jsonb_build_object('kind', u.kind, 'id', u.id, 'state', u.state,
        'can_give_up', u.can_give_up) order by u.kind, u.id)
      from (select * from /* schema */erasure_unfinished(scope.subjects, scope.event_keys, scope.operation_ids) limit 100) u), '[]'),
    'pseudonym', null, 'act_id', null, 'applied', false);
  if not apply or exists (
    select from /* schema */erasure_unfinished(scope.subjects, scope.event_keys, scope.operation_ids) u
    where not (give_up and u.can_give_up)) then
    return report;
  end if;

  why := /* schema */erased_text(reason, names, pseudonyms, how_many, false);
  insert into /* schema */erasures (erasure_id, pseudonym, reason, actor) values (erasure, 'erased:' || erasure, why, actor);
  if give_up then given_up := /* schema */give_up_events(scope.event_keys, why, actor); end if;
  insert into /* schema */erased_events (event_key, erasure_id)
  select k.event_key, erasure from unnest(scope.event_keys) as k(event_key) on conflict (event_key) do nothing;
  delete from /* schema */payloads p where p.event_key = any (scope.event_keys);
  delete from /* schema */payloads_held h where h.event_key = any (scope.event_keys);
  update /* schema */evidence v set body = null where v.body is not null and v.evidence_id = any (scope.evidence_ids);
  delete from /* schema */outbox_requests r where r.operation_id = any (scope.operation_ids);
  update /* schema */outbox_answers w set answer = null
  from /* schema */outbox_attempts t
  where t.operation_id = any (scope.operation_ids) and w.attempt_id = t.attempt_id and w.answer is not null;
  perform /* schema */erase_names(names, pseudonyms, how_many);

  -- whoever tells what ended by the clock has told it, or tells it under the new name
  perform from /* schema */entitlement_watch for update;
  update /* schema */orders o set subject = pseudonyms[array_position(names, o.subject)] where o.subject = any (scope.subjects);
  update /* schema */entitlements e set subject = pseudonyms[array_position(names, e.subject)] where e.subject = any (scope.subjects);
  update /* schema */entitlement_ends e set subject = pseudonyms[array_position(names, e.subject)] where e.subject = any (scope.subjects);
  update /* schema */customer_links l set subject = pseudonyms[array_position(names, l.subject)] where l.subject = any (scope.subjects);
  update /* schema */subject_merges m set from_subject = pseudonyms[array_position(names, m.from_subject)],
    into_subject = pseudonyms[array_position(names, m.into_subject)] where m.into_subject = asked;
  -- compared anew with what the app says
  delete from /* schema */shadow_differences d where d.subject = any (scope.subjects);

  insert into /* schema */operator_acts (act, target, reason, actor, details)
  values ('erase', 'subject:erased:' || erasure, why, actor,
    counts || jsonb_build_object('subjects', how_many, 'also', cardinality(also), 'given_up', given_up)) returning act_id into act;
  raise log 'hookledger: role % erases a subject as %, act %, which is erased:% now', session_user, to_json(left(actor, 100)), act, erasure;
  return report || jsonb_build_object('applied', true, 'pseudonym', 'erased:' || erasure, 'act_id', act::text,
    'subjects', to_jsonb(pseudonyms[1:how_many]), 'unfinished', '[]'::jsonb);
end $$;
revoke execute on function /* schema */erase_subject(text, text[], text, text, boolean, boolean) from public;
