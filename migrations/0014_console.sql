-- Who is signed in to the console. Nothing here lets anybody in: of what the browser holds there is a hash only.
create table /* schema */console_sessions (
  session_id uuid not null default gen_random_uuid(),
  token_sha256 bytea not null,
  actor text not null,
  roles text[] not null,
  began_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_by text,
  constraint console_sessions_pkey primary key (session_id),
  constraint console_sessions_token_key unique (token_sha256),
  constraint console_sessions_token_check check (length(token_sha256) = 32),
  constraint console_sessions_actor_check check (actor <> '' and length(actor) <= 200),
  constraint console_sessions_roles_check check (cardinality(roles) > 0),
  constraint console_sessions_ended_check check ((ended_at is null) = (ended_by is null))
);
create index console_sessions_expires_idx on /* schema */console_sessions (expires_at);

-- Somebody on the way to their provider of identities and back: once, within minutes, in one browser.
create table /* schema */console_sign_ins (
  browser_sha256 bytea not null,
  state text not null,
  nonce text not null,
  verifier text not null,
  began_at timestamptz not null default now(),
  constraint console_sign_ins_pkey primary key (browser_sha256)
);
create index console_sign_ins_began_idx on /* schema */console_sign_ins (began_at);

-- What the console signs its own tokens with: made from the installation's secret, which stays where it is.
create function /* schema */console_secret() returns bytea
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select sha256(convert_to('hookledger console', 'UTF8') || secret) from /* schema */installation
$$;
revoke execute on function /* schema */console_secret() from public;
