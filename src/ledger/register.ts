/**
 * Registration at start: states (for the foreign keys of P4), versions (so that only the newest worker
 * ignores what it does not know), and how entitlements are combined. Refused where the ledger holds
 * a state or an effect that the workflow no longer declares.
 */
import { HookledgerError } from '../core/errors.ts'
import { fingerprint } from '../core/fingerprint.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { retryOnLocks } from '../postgres/lock-retry.ts'
import { reversedSuffix } from '../workflow/order.ts'
import type { PlainHandler } from '../workflow/registry.ts'
import { entitles, type Workflow } from '../workflow/workflow.ts'

/** How the rows of one subject and entitlement are combined. */
export type Combine = 'any' | 'max' | 'sum'

/**
 * One configuration as a whole: its workflows with their versions, its sources and plain handlers. A
 * process of an older one must not ignore what only a newer one knows.
 */
export interface ConfigurationVersion {
  readonly version: string
  /** `license@3f…` for workflows, other words for the rest; sorted. */
  readonly members: readonly string[]
}

/** What a configuration consists of. `sources` and `handlers` are words that differ where they do. */
export function configurationVersion(
  workflows: readonly Workflow[],
  sources: readonly string[],
  handlers: readonly PlainHandler[],
): ConfigurationVersion {
  const members = [
    ...workflows.map((each) => `${each.name}@${each.version}`),
    ...sources.map((each) => `source ${each}`),
    ...handlers.flatMap(({ source, types }) => types.map((type) => handlerMember(source, type))),
  ].sort()
  return { version: fingerprint(members), members }
}

function handlerMember(source: string, type: string): string {
  return `handler ${source} ${type}`
}

/** Where configurations stand among the versions: no workflow can be named so. */
const configurationName = '(configuration)'

/** What registering found. */
export interface Registration {
  readonly warnings: readonly string[]
}

/**
 * Registers workflows and entitlement rules, in one transaction.
 *
 * @throws HookledgerError HKL_WORKFLOW_STATE_RETIRED, or HKL_WORKFLOW_INVALID where a known state
 * changed whether it entitles.
 */
export async function registerWorkflows(
  db: Database,
  workflows: readonly Workflow[],
  rules: Readonly<Record<string, Combine>>,
  configuration: ConfigurationVersion,
): Promise<Registration> {
  // processes that start at once on a new schema meet at rows that neither has seen yet: one of them begins anew
  return retryOnLocks(() =>
    db.transaction((tx) => registerAll(db, tx, workflows, rules, configuration)),
  )
}

async function registerAll(
  db: Database,
  tx: Executor,
  workflows: readonly Workflow[],
  rules: Readonly<Record<string, Combine>>,
  configuration: ConfigurationVersion,
): Promise<Registration> {
  const warnings: string[] = []
  // waits for batches that are ignoring something just now, and is waited for by the next ones
  await tx.query({
    text: `select 1 from ${db.schema}workflow_versions order by workflow, version for update`,
  })
  for (const workflow of [...workflows].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    await refuseRetired(db, tx, workflow)
    await registerStates(db, tx, workflow)
    warnings.push(...(await registerVersion(db, tx, workflow)))
  }
  warnings.push(...(await registerConfiguration(db, tx, configuration)))
  const names = Object.keys(rules).sort()
  await tx.query({
    text: `insert into ${db.schema}entitlement_rules as r (entitlement, combine)
      select * from unnest($1::text[], $2::text[]) on conflict (entitlement) do update set combine = excluded.combine
      where r.combine <> excluded.combine`,
    values: [names, names.map((name) => rules[name] ?? 'any')],
  })
  return { warnings }
}

/**
 * Registers the states of one workflow, where decisions will name them.
 *
 * @throws HookledgerError HKL_WORKFLOW_INVALID where a known state changed whether it entitles
 */
export async function registerStates(
  db: Database,
  tx: Executor,
  workflow: Workflow,
): Promise<void> {
  const states = [...workflow.states.keys()].sort()
  // under either of its keys: two processes that start at once meet at both
  await tx.query({
    text: `insert into ${db.schema}workflow_states (workflow, state, entitles)
      select $1, * from unnest($2::text[], $3::boolean[]) on conflict do nothing`,
    values: [workflow.name, states, states.map((state) => entitles(workflow, state))],
  })
  const registered = await tx.query<{ state: string; entitles: boolean }>({
    text: `select state, entitles from ${db.schema}workflow_states where workflow = $1`,
    values: [workflow.name],
  })
  for (const row of registered) {
    if (!workflow.states.has(row.state) || entitles(workflow, row.state) === row.entitles) continue
    throw new HookledgerError(
      'HKL_WORKFLOW_INVALID',
      `workflow "${workflow.name}": state "${row.state}" is registered as ${row.entitles ? 'entitling' : 'not entitling'}; changing that needs a new name for the state`,
    )
  }
}

/** States with orders and effects with rows must still be declared, or renamed. */
async function refuseRetired(db: Database, tx: Executor, workflow: Workflow): Promise<void> {
  const renamedStates = new Set([...workflow.states.values()].map((state) => state.renamedFrom))
  const used = await tx.query<{ state: string }>({
    // Asked only of states that are gone: no index knows the state of an order, and a start must not go
    // through all of them.
    text: `select w.state from ${db.schema}workflow_states w where w.workflow = $1 and not (w.state = any ($2::text[]))
      and exists (select 1 from ${db.schema}orders o where o.workflow = w.workflow and o.state = w.state)`,
    values: [workflow.name, [...workflow.states.keys()]],
  })
  for (const { state } of used) {
    if (renamedStates.has(state)) continue
    throw new HookledgerError(
      'HKL_WORKFLOW_STATE_RETIRED',
      `workflow "${workflow.name}" no longer declares state "${state}", in which orders are: declare it, or say renamedFrom: '${state}' where it lives on`,
    )
  }
  const renamedEffects = new Set([...workflow.effects.values()].map((effect) => effect.renamedFrom))
  const types = await tx.query<{ effect_type: string }>({
    text: `select distinct t.effect_type from ${db.schema}workflow_versions v, unnest(v.effect_types) as t(effect_type)
      where v.workflow = $1 and exists (
        select 1 from ${db.schema}ledger_decisions d join ${db.schema}fulfillment_effects e on e.decision_id = d.decision_id and e.order_id = d.order_id
        where d.workflow = v.workflow and e.effect_type in (t.effect_type, t.effect_type || '${reversedSuffix}'))
        and not (t.effect_type = any ($2::text[]))`,
    values: [workflow.name, [...workflow.effects.keys()]],
  })
  for (const { effect_type: type } of types) {
    if (renamedEffects.has(type)) continue
    throw new HookledgerError(
      'HKL_WORKFLOW_STATE_RETIRED',
      `workflow "${workflow.name}" no longer declares effect "${type}", which orders have: declare it, or say renamedFrom: '${type}' where it lives on`,
    )
  }
}

async function registerVersion(db: Database, tx: Executor, workflow: Workflow): Promise<string[]> {
  const types = [...workflow.handlers.keys()].sort()
  const effects = [...workflow.effects.keys()].sort()
  const added = await register(db, tx, workflow.name, workflow.version, types, effects)
  return replayable(db, tx, added, `workflow "${workflow.name}"`)
}

async function registerConfiguration(
  db: Database,
  tx: Executor,
  { version, members }: ConfigurationVersion,
): Promise<string[]> {
  const added = await register(db, tx, configurationName, version, members, [])
  const types = added.flatMap((member) => /^handler \S+ (.+)$/.exec(member)?.[1] ?? [])
  return replayable(db, tx, [...new Set(types)], 'a handler')
}

/** Registers a version; what it has that the newest before it had not. */
async function register(
  db: Database,
  tx: Executor,
  name: string,
  version: string,
  types: readonly string[],
  effects: readonly string[],
): Promise<readonly string[]> {
  const s = db.schema
  const [previous] = await tx.query<{ event_types: string[] }>({
    text: `select event_types from ${s}workflow_versions where workflow = $1 and retired_at is null
      order by first_registered_at desc limit 1`,
    values: [name],
  })
  await tx.query({
    text: `insert into ${s}workflow_versions as v (workflow, version, event_types, effect_types)
      values ($1, $2, $3::text[], $4::text[])
      on conflict (workflow, version) do update set last_registered_at = clock_timestamp()`,
    values: [name, version, types, effects],
  })
  return previous === undefined
    ? types
    : types.filter((type) => !previous.event_types.includes(type))
}

/** Tells of events that were ignored when nothing handled their type. */
async function replayable(
  db: Database,
  tx: Executor,
  added: readonly string[],
  by: string,
): Promise<string[]> {
  const s = db.schema
  if (added.length === 0) return []
  const ignored = await tx.query<{ event_type: string; events: string }>({
    // what was adopted has no body, and was handled by the app
    text: `select event_type, count(*) as events from ${s}inbox_ignored
      where event_type = any ($1::text[]) and reason <> 'adopted' group by event_type order by event_type`,
    values: [added],
  })
  return ignored.map(
    (row) =>
      `${row.events} ignored events of type ${row.event_type}, which ${by} handles now: hookledger replay --type ${row.event_type}`,
  )
}

/**
 * Whether a process may ignore what it does not know: whether its configuration and the versions of its
 * workflows are the newest, those whose first registration is latest. Registered rows are locked until
 * the transaction ends, so that nothing is ignored while something newer is being registered.
 */
export async function areNewest(
  schema: string,
  tx: Executor,
  workflows: readonly Workflow[],
  configuration: ConfigurationVersion,
): Promise<boolean> {
  const names = [...workflows.map((each) => each.name), configurationName]
  const versions = [...workflows.map((each) => each.version), configuration.version]
  const mine = `select v.* from unnest($1::text[], $2::text[]) as m(workflow, version)
    join ${schema}workflow_versions v on v.workflow = m.workflow and v.version = m.version`
  // locked first, read in a second statement: one that waited would not see what it waited for
  await tx.query({
    text: `${mine} order by v.workflow, v.version for share of v`,
    values: [names, versions],
  })
  const rows = await tx.query<{ newer: boolean }>({
    text: `with mine as (${mine})
      select exists (
        select 1 from mine join ${schema}workflow_versions other on other.workflow = mine.workflow
          and other.retired_at is null and other.first_registered_at > mine.first_registered_at
        where other.workflow <> '${configurationName}' or not exists (
          select 1 from ${schema}workflow_versions gone
          where gone.retired_at is not null and gone.workflow || '@' || gone.version = any (other.event_types))) as newer`,
    values: [names, versions],
  })
  return rows[0]?.newer !== true
}
