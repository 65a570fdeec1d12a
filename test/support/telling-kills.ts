/**
 * Workers that tell what ended by the clock, one of them killed at each statement of it while another one goes on:
 * every end is told once, by whichever.
 */
import { fileURLToPath } from 'node:url'
import { startScript, type Driver } from './failpoint-process.ts'
import type { Probe } from './probe.ts'

/** The statements of telling, in their order. */
export const tellingSteps = [
  'watch',
  'lock',
  'note',
  'advance',
  'forget',
  'commit_note',
  'take',
  'operation',
  'commit_telling',
] as const

export type TellingStep = (typeof tellingSteps)[number]

/** Whether a process dies before a step's statement is sent, or after its answer came. */
export type KilledWhen = 'before' | 'after'

/** What the driver is told; sent as JSON. */
export interface TellingDriverSettings {
  readonly databaseUrl: string
  readonly dies?: { readonly step: TellingStep; readonly when: KilledWhen }
}

const statements: readonly (readonly [TellingStep, RegExp])[] = [
  ['watch', /entitlement_watch for update skip locked/],
  ['lock', /for no key update of o skip locked/],
  ['note', /insert into \S*entitlement_ends/],
  ['advance', /entitlement_watch u set through/],
  ['forget', /delete from \S*entitlement_ends/],
  ['take', /delete from \S*entitlement_changes/],
]

/** Which step a statement is, after those of the same transaction; null: none. */
export function stepOf(text: string, before: readonly string[]): TellingStep | null {
  if (text === 'commit') {
    if (before.includes('operation')) return 'commit_telling'
    return before.includes('note') ? 'commit_note' : null
  }
  if (before.includes('take') && /insert into \S*outbox/.test(text)) return 'operation'
  return statements.find(([, pattern]) => pattern.test(text))?.[0] ?? null
}

const script = fileURLToPath(new URL('./telling-driver.ts', import.meta.url))

/** Starts a worker of the probe's database; without `dies` it goes on for good. */
export function startTelling(bench: Probe, dies?: TellingDriverSettings['dies']): Promise<Driver> {
  const settings: TellingDriverSettings = {
    databaseUrl: bench.database.url,
    ...(dies !== undefined && { dies }),
  }
  return startScript(script, settings)
}

/** Lets what has no end that is still to be told end in a moment; answers order and end of each. */
export async function endAgain(bench: Probe, orders: readonly string[]): Promise<string[]> {
  const rows = await bench.rows<{ order_id: string; valid_until: Date }>(
    `update entitlements e set valid_until = date_trunc('milliseconds', clock_timestamp()) + n.place * interval '15 milliseconds'
     from unnest($1::text[]) with ordinality as n(order_id, place)
     where e.order_id = n.order_id and (e.valid_until is null or exists (
       select 1 from entitlement_ends x where x.order_id = e.order_id and x.valid_until = e.valid_until))
     returning e.order_id, e.valid_until`,
    [orders],
  )
  return rows.map((row) => `${row.order_id} ${row.valid_until.toISOString()}`)
}
