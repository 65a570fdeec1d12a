/**
 * A workflow for attacks on the engine: small bodies whose every field a test chooses, and hooks that
 * stand for the user's own code. Its events arrive signed, through the library's own door.
 */
import type pg from 'pg'
import {
  createHookledger,
  money,
  stripe,
  type Hookledger,
  type HookledgerOptions,
} from 'hookledger'
import { createDatabase } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { partsOf } from '../../src/hookledger.ts'
import { signStripe } from '../../src/testing/sign.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import { defer, effect, fulfill, move } from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import { name, orderId, waitFor, type Resolution } from '../../src/workflow/resolution.ts'
import type { ApplyInput, DecideInput, Workflow } from '../../src/workflow/workflow.ts'
import { createHookledgerDatabase } from './hookledger-database.ts'
import type { TestDatabase } from './test-database.ts'

/** A body of the probe's events. */
export interface ProbeBody {
  readonly id: string
  readonly type: string
  /** The order's own id; without it the event waits for `waits`. */
  readonly order?: string
  readonly waits?: string
  readonly learns?: string
  readonly payment?: string
  readonly amount?: number
  /** The reference of a note that must exist first. */
  readonly needs?: string
  readonly account?: string
  readonly livemode?: boolean
  readonly [more: string]: unknown
}

/** What a test puts in the place of the user's code. All are called with what the engine gives. */
export interface ProbeHooks {
  decide?: (input: DecideInput) => Decision | undefined
  order?: (event: ProbeBody) => Resolution | undefined
  apply?: (input: ApplyInput) => Promise<void>
  reverse?: (input: ApplyInput) => Promise<void>
}

/** What differs from the probe's usual workflow. */
export interface ProbeShape {
  readonly name?: string
  readonly opens?: 'app' | 'event'
  readonly version?: string
  readonly types?: readonly string[]
  readonly unclaimed?: 'finding' | 'ignore'
  readonly states?: Readonly<
    Record<string, { readonly entitles?: boolean; readonly renamedFrom?: string }>
  >
  readonly transitions?: Readonly<Record<string, readonly string[]>>
  readonly effects?: Readonly<Record<string, { readonly renamedFrom?: string }>>
}

/** The types that the probe handles. */
export const probeTypes = ['pay', 'refund', 'note', 'after', 'custom'] as const

/** Builds the workflow: `pay` grants once, `note` records its own id, `after` waits for a note. */
export function probeWorkflow(hooks: ProbeHooks = {}, shape: ProbeShape = {}): Workflow {
  const own = {
    apply: (input: ApplyInput) => hooks.apply?.(input) ?? Promise.resolve(),
    reverse: (input: ApplyInput) => hooks.reverse?.(input) ?? Promise.resolve(),
  }
  const effects = shape.effects ?? { grant: {}, note: {}, after: {}, refund: {} }
  let workflow = defineUntypedWorkflow(shape.name ?? 'probe', {
    sources: ['probe'],
    initial: 'pending',
    opens: shape.opens ?? 'event',
    states: (shape.states ?? { pending: {}, paid: { entitles: true }, refunded: {} }) as never,
    transitions: (shape.transitions ?? {
      pending: ['paid', 'refunded'],
      paid: ['refunded'],
      refunded: ['paid'],
    }) as never,
    effects: Object.fromEntries(
      Object.entries(effects).map(([type, options]) => [type, { ...own, ...options }]),
    ) as never,
    ...(shape.version === undefined ? {} : { version: shape.version }),
  })
  for (const type of shape.types ?? probeTypes) {
    workflow = workflow.on(type, {
      order: ({ event }) =>
        hooks.order?.(event as unknown as ProbeBody) ?? orderOf(event as unknown as ProbeBody),
      learn: ({ event }) => learned(event as unknown as ProbeBody),
      decide: (input) => (hooks.decide?.(input as never) ?? decideProbe(input as never)) as never,
      ...(shape.unclaimed === undefined ? {} : { unclaimed: shape.unclaimed }),
    })
  }
  return workflow
}

function orderOf(body: ProbeBody): Resolution {
  return body.order === undefined ? waitFor([name('ref', body.waits ?? null)]) : orderId(body.order)
}

function learned(body: ProbeBody): ReturnType<typeof name>[] {
  return body.learns === undefined ? [] : [name('ref', body.learns)]
}

/** What the probe decides by itself. */
export function decideProbe({ event, order, effects }: DecideInput): Decision {
  const body = event as unknown as ProbeBody
  switch (body.type) {
    case 'pay':
      return fulfill({
        to: 'paid',
        payment: {
          id: body.payment ?? `pay_${order.id}`,
          money: money(body.amount ?? 4900, 'usd'),
        },
        effects: [{ type: 'grant' }],
        entitle: [{ subject: `user:${order.id}`, entitlement: 'pro' }],
      }) as Decision
    case 'refund':
      return move({
        to: 'refunded',
        once: {
          type: 'refund',
          reference: body.id,
          amount: money(body.amount ?? 4900, 'usd'),
          payment: body.payment ?? `pay_${order.id}`,
        },
      }) as Decision
    case 'after':
      if (!effects.some((each) => each.type === 'note' && each.reference === body.needs)) {
        return defer({ missing: effect('note', body.needs ?? '') }) as Decision
      }
      return fulfill({ effects: [{ type: 'after', reference: body.id }] }) as Decision
    default:
      return fulfill({ effects: [{ type: 'note', reference: body.id }] }) as Decision
  }
}

/** The secret that the probe's deliveries are signed with. */
export const probeSecret = 'whsec_probe_0123456789abcdef'

/** The probe's options over a database. */
export function probeOptions(
  workflows: readonly Workflow[],
  more: Partial<HookledgerOptions> = {},
): HookledgerOptions {
  return {
    environment: 'test',
    sources: {
      probe: {
        ...stripe({ environment: 'test', signingSecrets: [probeSecret] }),
        // mirrors of a source of this kind need an API; what it answers is the test's
        calls: { client: () => undefined, failureOf: () => ({ kind: 'unknown', text: 'failed' }) },
      },
    },
    workflows,
    ...more,
  }
}

/** A probe over a database of its own. */
export interface Probe {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly db: Database
  readonly hookledger: Hookledger
  rows<R extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<R[]>
  /** Delivers over the library's door; every delivery must be answered 200. */
  deliver(...bodies: readonly ProbeBody[]): Promise<void>
  /** Works with `runOnce` until nothing more is decided; resolves with how many were. */
  work(): Promise<number>
  /** Empties everything that a test can leave behind: cheaper than another database. */
  reset(): Promise<void>
  /** Another Hookledger over the same database, closed with the probe. */
  another(options: Partial<HookledgerOptions>, pool?: pg.Pool): Hookledger
  close(): Promise<void>
}

/** Creates and registers a probe. */
export async function createProbe(
  options: Partial<HookledgerOptions> & { readonly workflows: readonly Workflow[] },
  poolConfig: pg.PoolConfig = {},
): Promise<Probe> {
  const database = await createHookledgerDatabase()
  const pool = database.pool({
    max: 20,
    options: '-c search_path=hookledger,public',
    ...poolConfig,
  })
  pool.setMaxListeners(0) // each Hookledger over it listens
  const made: Hookledger[] = []
  const another = (more: Partial<HookledgerOptions>, over: pg.Pool = pool): Hookledger => {
    const hookledger = createHookledger(
      probeOptions(more.workflows ?? options.workflows, { ...options, ...more, database: over }),
    )
    made.push(hookledger)
    return hookledger
  }
  const hookledger = another({})
  await partsOf(hookledger).register()
  return {
    database,
    pool,
    hookledger,
    another,
    db: createDatabase(pool, 'hookledger'),
    rows: async <R extends object>(text: string, values: unknown[] = []) =>
      (await pool.query<R & pg.QueryResultRow>(text, values)).rows,
    deliver: (...bodies) => deliverTo(hookledger, bodies),
    work: () => workOff(hookledger),
    reset: () => emptyTables(pool),
    close: async () => {
      await Promise.all(made.map((each) => each.stop({ timeoutMs: 2000 })))
      await database.drop()
    },
  }
}

const kept = new Set([
  'installation',
  'migrations',
  'sources',
  'workflow_states',
  'workflow_versions',
  'entitlement_rules',
  'entitlement_watch',
  'retention',
  'outbox_destinations',
])

/** Deletes every row but those of the installation, of registered workflows and destinations. */
export async function emptyTables(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name, tablename from pg_tables where schemaname in ('hookledger', 'shop')`,
  )
  const deletes = rows
    .filter(({ name }) => !kept.has(name.split('.')[1] ?? '') && !/payloads_\d+$/.test(name))
    .map(({ name }) => `delete from ${name}`)
  const client = await pool.connect()
  try {
    // the append-only tables refuse it otherwise, and so do foreign keys by their order
    await client.query(
      `begin; set local synchronous_commit = off; set local session_replication_role = replica; ${deletes.join('; ')}; commit`,
    )
  } finally {
    client.release()
  }
}

/** Takes every hook out. */
export function clearHooks(hooks: ProbeHooks): void {
  for (const key of Object.keys(hooks) as (keyof ProbeHooks)[]) delete hooks[key]
}

/** Delivers bodies, all at once and each answered 200. */
export async function deliverTo(
  hookledger: Hookledger,
  bodies: readonly ProbeBody[],
  secret: string = probeSecret,
  source = 'probe',
): Promise<void> {
  const statuses = await Promise.all(
    bodies.map(async (body) => {
      const bytes = Buffer.from(
        JSON.stringify({ created: 1_767_225_600, livemode: false, ...body }),
      )
      return (
        await hookledger.ingest({ source, headers: signStripe(bytes, secret), rawBody: bytes })
      ).status
    }),
  )
  const refused = statuses.filter((status) => status !== 200)
  if (refused.length > 0)
    throw new Error(`${refused.length} deliveries were answered ${refused[0]}`)
}

/** Runs until a pass decides nothing. */
export async function workOff(hookledger: Hookledger): Promise<number> {
  let events = 0
  for (;;) {
    const done = await hookledger.runOnce({ budgetMs: 20_000 })
    events += done.events
    if (done.events === 0) return events
  }
}

let made = 0

/** A body of this type, with an id of its own unless one is given. */
export function probe(type: string, fields: Partial<ProbeBody> = {}): ProbeBody {
  made += 1
  return { id: `evt_${made}`, type, ...fields }
}

/** Waits until `holds` does, or fails with what it last saw. */
export async function until<T>(
  look: () => Promise<T>,
  holds: (seen: T) => boolean,
  withinMs = 15_000,
): Promise<T> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const seen = await look()
    if (holds(seen)) return seen
    if (performance.now() > deadline)
      throw new Error(
        `waited ${withinMs} ms in vain; last seen: ${JSON.stringify(seen)?.slice(0, 500)}`,
      )
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
