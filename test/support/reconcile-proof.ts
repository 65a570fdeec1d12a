/**
 * A shop over a database of its own and a simulated provider that it can ask: plays worlds, runs passes,
 * and hands out what the oracle judges. One database and one Hookledger serve many worlds, one after the
 * other.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import {
  createHookledger,
  money,
  stripe,
  type Hookledger,
  type HookledgerOptions,
} from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { signStripe } from '../../src/testing/sign.ts'
import type { StripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import { skip } from '../../src/workflow/decision.ts'
import type { Records } from '../../src/workflow/records.ts'
import type { AnyHandler, DecideInput, Workflow } from '../../src/workflow/workflow.ts'
import { createHookledgerDatabase } from './hookledger-database.ts'
import { emptyTables, workOff } from './probe.ts'
import type { Sown } from './reconcile-seeds.ts'
import { eventsOf, type World } from './reconcile-world.ts'
import { reconcileViolations, type ProviderTruth } from './reconcile-tables.ts'
import { shopOptions, shopSecret } from './shop.ts'
import type { TestDatabase } from './test-database.ts'

type PassReport = Awaited<ReturnType<Reconciler['pass']>>
type PassOptions = Parameters<Reconciler['pass']>[0]
type Reconciler = Awaited<ReturnType<ReturnType<typeof partsOf>['reconciler']>>

/** How a proof differs from the usual. */
export interface ProofOptions {
  readonly options?: Partial<HookledgerOptions>
  /** Another database than one of the run's server: migrated, with the shop's tables. */
  readonly database?: Pick<TestDatabase, 'pool' | 'drop'>
  /** Puts a mistake into how the provider is asked. */
  readonly records?: (records: Records) => Records
}

/** The shop, the provider, and what can be done with them. */
export interface ReconcileProof {
  readonly pool: pg.Pool
  readonly hookledger: Hookledger
  /** Where the provider's API answers. */
  readonly apiBase: string
  /** Makes this the provider that is asked; `before` is called before each of its answers. */
  ask(double: StripeDouble, before?: (url: URL) => void): void
  /** Delivers an event, signed, over the shop's door. */
  deliver(event: object): Promise<void>
  /** The status that a delivery of this event is answered with. */
  send(event: object): Promise<number>
  /** Empties the tables and plays a world: openings, deliveries, decisions, and then the contradictions. */
  play(world: World): Promise<readonly Sown[]>
  /** Takes the mistake out of the workflow that passed over what the world's seeds name. */
  mendWorkflow(): void
  /** One pass, with a worker beside it. */
  pass(options?: Partial<PassOptions>): Promise<PassReport>
  close(): Promise<void>
}

/** Checkpoints begin where Hookledger was installed: so long before every world. */
const installedAgo = '3 hours'

/** Creates the shop and a provider. */
export async function createReconcileProof({
  options = {},
  records,
  database: given,
}: ProofOptions = {}): Promise<ReconcileProof> {
  const database = given ?? (await createHookledgerDatabase())
  const pool = database.pool({ max: 20, options: '-c search_path=hookledger,public' })
  pool.setMaxListeners(0)
  await pool.query(`update installation set created_at = now() - $1::interval`, [installedAgo])
  let asked: StripeDouble | undefined
  let beforeAnswer: ((url: URL) => void) | undefined
  const server = createServer((request, response) => {
    if (asked === undefined) return void response.writeHead(503).end()
    beforeAnswer?.(new URL(request.url ?? '/', apiBase))
    void asked.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const apiBase = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const unhandled = new Set<string>()
  const source = stripe({
    environment: 'test',
    signingSecrets: [shopSecret],
    apiKey: 'sk_test_proof',
    apiBase,
  })
  const hookledger = createHookledger({
    ...shopOptions,
    // a second pass looks at all of it again
    reconcile: {
      callsPerSecond: 10_000,
      lagMs: 0,
      overlapMs: 3 * 3_600_000,
      sliceMs: 2 * 3_600_000,
    },
    ...options,
    workflows: shopOptions.workflows.map((workflow) => passingOver(workflow, unhandled)),
    sources: { stripe: records === undefined ? source : withRecords(source, records) },
    database: pool,
  })
  const parts = partsOf(hookledger)
  await parts.register()
  let reconciler: Reconciler | undefined
  const send = async (event: object): Promise<number> => {
    const body = Buffer.from(stripeBody(event))
    const headers = signStripe(body, shopSecret)
    return (await hookledger.ingest({ source: 'stripe', headers, rawBody: body })).status
  }
  const deliver = async (event: object): Promise<void> => {
    const status = await send(event)
    if (status !== 200) throw new Error(`answered ${status}`)
  }
  return {
    pool,
    hookledger,
    apiBase,
    ask: (double, before) => {
      asked = double
      beforeAnswer = before
    },
    send,
    deliver,
    play: async (world) => {
      asked = world.double
      beforeAnswer = undefined
      await emptyTables(pool)
      return playWorld(world, { pool, hookledger, deliver, unhandled })
    },
    mendWorkflow: () => unhandled.clear(),
    pass: async (passOptions = {}) => {
      const worker = await parts.worker()
      await worker.start()
      try {
        reconciler ??= await parts.reconciler()
        return await reconciler.pass({ how: 'manual', actor: 'proof', ...passOptions })
      } finally {
        await worker.stop(5000)
      }
    },
    close: async () => {
      await hookledger.stop({ timeoutMs: 2000 })
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await database.drop()
    },
  }
}

/** The source with its provider asked in another way. */
function withRecords<S extends { readonly records?: Records | undefined }>(
  source: S,
  change: (records: Records) => Records,
): S {
  const { records } = source
  if (records === undefined) throw new Error('this source cannot be asked')
  return Object.create(source, { records: { value: change(records), enumerable: true } }) as S
}

/** The workflow, made to take no notice of some objects, as one with a mistake in it would. */
function passingOver(workflow: Workflow, unhandled: ReadonlySet<string>): Workflow {
  const handlers = [...workflow.handlers].map(([type, handler]): [string, AnyHandler] => [
    type,
    {
      ...handler,
      decide: (input: never) => {
        const { data } = (input as DecideInput).event as unknown as {
          readonly data?: { readonly object?: { readonly id?: unknown } }
        }
        return unhandled.has(String(data?.object?.id)) ? skip('passed over') : handler.decide(input)
      },
    },
  ])
  return { ...workflow, handlers: new Map(handlers) }
}

interface Playing {
  readonly pool: pg.Pool
  readonly hookledger: Hookledger
  readonly deliver: (event: object) => Promise<void>
  readonly unhandled: Set<string>
}

async function playWorld(
  world: World,
  { pool, hookledger, deliver, unhandled }: Playing,
): Promise<readonly Sown[]> {
  unhandled.clear()
  for (const { seed, events } of world.orders)
    for (const id of seed?.unhandled?.({ events }) ?? []) unhandled.add(id)
  const open = async (when: 'shop_first' | 'shop_late'): Promise<void> => {
    for (const { order, seed } of world.orders) {
      if (seed?.opens === 'nobody') continue
      const opening = seed?.opens === 'shop' ? 'shop_first' : order.opening
      if (opening !== when) continue
      await hookledger.openOrder(pool, {
        id: order.id,
        workflow: 'license',
        subject: order.subject,
        expected: money(order.amount, order.currency),
      })
    }
  }
  await open('shop_first')
  for (let at = 0; at < world.arrivals.length; at += 40) {
    await Promise.all(world.arrivals.slice(at, at + 40).map(deliver))
    await workOff(hookledger)
  }
  await open('shop_late')
  await workOff(hookledger)
  const sown: Sown[] = []
  for (const { order, events, seed } of world.orders) {
    const expectation = await seed?.sow({ pool, double: world.double, order, events, deliver })
    if (seed !== null && expectation != null)
      sown.push({ ...expectation, name: seed.name, into: order.id })
  }
  await workOff(hookledger)
  return sown
}

/** What the oracle of tables must know of a world. */
export function providerTruth(world: World, sown: readonly Sown[] = []): ProviderTruth {
  const deleted = new Set(sown.map((each) => each.deleted))
  const listed = eventsOf(world).filter(({ id }) => world.fates.get(id) !== 'hidden')
  return {
    listed: listed.map(({ id, created }) => ({ id, createdAt: new Date(created * 1000) })),
    delivered: listed
      .map(({ id }) => id)
      .filter((id) => world.fates.get(id) === 'delivered' && !deleted.has(id)),
  }
}

/** What the tables break, and events that were put in although nobody had lost them. */
export async function wrongRows(
  { pool }: ReconcileProof,
  world: World,
  sown: readonly Sown[],
): Promise<readonly string[]> {
  const violations = await reconcileViolations(pool, providerTruth(world, sown))
  const { rows } = await pool.query<{ id: string }>(
    `select event_id as id from inbox_events where via = 'reconciliation' and event_id not like 'object:%'`,
  )
  const known = new Set(eventsOf(world).map(({ id }) => id))
  return [
    ...violations.map(({ invariant, key }) => `${invariant} ${key}`),
    ...rows.filter(({ id }) => !known.has(id)).map(({ id }) => `no event of the provider: ${id}`),
  ]
}
