/**
 * The outbox between a workflow that sends and destinations that misbehave: a probe whose `pay` event
 * makes an effect with operations, dispatchers over it, and what the oracle needs to judge them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { money } from '../../src/core/money.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { Dispatcher } from '../../src/outbox/dispatcher.ts'
import type { Destination, LookupOutcome } from '../../src/outbox/destination.ts'
import type { DeclaredContract } from '../../src/outbox/destinations/declared-contract.ts'
import type { HttpLookup } from '../../src/outbox/destinations/http-options.ts'
import { http } from '../../src/outbox/destinations/http.ts'
import { fulfill, type Decision } from '../../src/workflow/decision.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import type { AdversarialDestination } from './adversarial-destination.ts'
import { findOutboxViolations, type OutboxHistory } from './outbox-oracle.ts'
import { createProbe, probe, probeWorkflow, until, type Probe } from './probe.ts'

/** A contract under which everything that takes hours takes fractions of a second. */
export const quickContract: DeclaredContract = {
  callMs: 400,
  leaseMs: 1000,
  firstRetryMs: 10,
  maxRetryMs: 80,
  // tests of the breaker are not these: here every call is to be seen
  breakerFailures: 100_000,
}

/** How a misbehaving destination is declared to the product. */
export interface DeclaredAdversary {
  readonly url: string
  readonly contract?: DeclaredContract
  /** Whether it can be asked what it did. */
  readonly looksUp?: boolean
  /** Whether a 2xx counts only when its body says so. */
  readonly readsBodies?: boolean
}

/** The destination that the product is configured with. */
export function declareAdversary({
  url,
  contract = {},
  looksUp = false,
  readsBodies = false,
}: DeclaredAdversary): Destination {
  return http({
    url,
    allow: [new URL(url).host],
    contract: { ...quickContract, ...contract },
    ...(looksUp && { lookup: lookUp }),
    ...(readsBodies && {
      accepts: ({ json }) =>
        typeof json === 'object' && json !== null && 'status' in json ? 'sent' : 'refused',
    }),
  }) as Destination
}

async function lookUp({ key, get }: HttpLookup): Promise<LookupOutcome> {
  const { status, json } = await get(`/lookup/${encodeURIComponent(key)}`)
  const id = typeof json === 'object' && json !== null ? (json as { id?: unknown }).id : undefined
  if (status === 200 && typeof id === 'string') return { kind: 'present', receipt: { id } }
  if (status === 404 && id === null) return { kind: 'absent' }
  return { kind: 'no_answer', error: `answered ${status}` }
}

/** The workflow whose `pay` sends once to each of these destinations. */
export function sendingWorkflow(destinations: readonly string[]): Workflow {
  return probeWorkflow({
    decide: ({ event, order }) =>
      event['type'] === 'pay'
        ? (fulfill({
            to: 'paid',
            payment: { id: `pay_${order.id}`, money: money(4900, 'usd') },
            effects: [
              {
                type: 'grant',
                send: destinations.map((to) => ({
                  to,
                  body: { order: order.id, says: 'thank you' },
                })),
              },
            ],
            entitle: [{ subject: `user:${order.id}`, entitlement: 'pro' }],
          }) as Decision)
        : undefined,
  })
}

/** An adversary and how the product and the oracle are told of it. */
export interface Opponent {
  readonly adversary: AdversarialDestination
  readonly declared?: Omit<DeclaredAdversary, 'url'>
  readonly honorsKeys?: boolean
  /** The window that the oracle holds calls to, in milliseconds. */
  readonly windowMs?: number
}

/** A probe that sends. */
export interface OutboxProof {
  readonly probe: Probe
  /** Pays so many orders, named after `prefix`, and works them off; resolves with their ids. */
  pay(orders: number, prefix?: string): Promise<readonly string[]>
  /** Starts so many dispatchers in this process. */
  dispatch(dispatchers?: number): Promise<void>
  /** Starts so many that work and dispatch; they run until `close`. */
  start(count: number): Promise<void>
  /** Stops those. */
  rest(): Promise<void>
  /** Waits until nothing is left to do, stops all dispatchers, and asks the oracle. */
  expectQuiet(withinMs?: number): Promise<void>
  /** How many operations are in each state. */
  states(): Promise<Readonly<Record<string, number>>>
  close(): Promise<void>
}

/** Creates a proof with these opponents as destinations, each of which `grant` sends to. */
export async function createOutboxProof(
  opponents: Readonly<Record<string, Opponent>>,
  workflow: Workflow = sendingWorkflow(Object.keys(opponents)),
): Promise<OutboxProof> {
  const workflows = [workflow]
  const destinations = (): Record<string, Destination> =>
    Object.fromEntries(
      Object.entries(opponents).map(([name, { adversary, declared = {} }]) => [
        name,
        declareAdversary({ ...declared, url: adversary.url }),
      ]),
    )
  const bench = await createProbe({ workflows, destinations: destinations() })
  const running: Dispatcher[] = []
  const rest = async (timeoutMs = 10_000): Promise<void> => {
    await Promise.all(running.splice(0).map((each) => each.stop(timeoutMs)))
  }
  return {
    probe: bench,
    pay: async (orders, prefix = 'order') => {
      const ids = Array.from({ length: orders }, (_, at) => `${prefix}-${at}`)
      await bench.deliver(...ids.map((order) => probe('pay', { order })))
      await workWithoutDispatch(bench)
      return ids
    },
    dispatch: async (dispatchers = 1) => {
      for (let n = 0; n < dispatchers; n++) {
        const parts = partsOf(bench.another({ workflows, destinations: destinations() }))
        await parts.register()
        const dispatcher = await parts.dispatcher()
        running.push(dispatcher)
        dispatcher.start()
      }
    },
    start: async (count) => {
      for (let n = 0; n < count; n++)
        await bench.another({ workflows, destinations: destinations() }).start()
    },
    rest: () => rest(),
    expectQuiet: async (withinMs = 20_000) => {
      await untilQuiet(bench, withinMs)
      await rest()
      await sleep(50)
      expect(await findOutboxViolations(bench.pool, historyOf(opponents), true)).toEqual([])
    },
    states: () => statesOf(bench),
    close: async () => {
      await rest(2000)
      await bench.close()
    },
  }
}

/** What is known of these opponents from outside. */
function historyOf(opponents: Readonly<Record<string, Opponent>>): OutboxHistory {
  return {
    destinations: Object.fromEntries(
      Object.entries(opponents).map(([name, { adversary, honorsKeys = true, windowMs }]) => [
        name,
        { log: adversary.log, honorsKeys, sends: 'body', windowMs: windowMs ?? null },
      ]),
    ),
    routes: Object.keys(opponents).map((destination) => ({
      effectType: 'grant',
      destination,
      name: 'grant',
    })),
    added: [],
  }
}

/** Decides everything that is stored, and calls nobody. */
async function workWithoutDispatch(bench: Probe): Promise<void> {
  const rows = await bench.rows<{ key: string }>(
    `select event_key as key from inbox_ready order by 1`,
  )
  await partsOf(bench.hookledger).workOff(rows.map(({ key }) => BigInt(key)))
  expect(await bench.rows(`select event_id from webhook_inbox where state <> 'processed'`)).toEqual(
    [],
  )
}

/** Waits until no operation is under way or due, now or later. */
async function untilQuiet(bench: Probe, withinMs: number): Promise<void> {
  await until(
    () =>
      bench.rows(
        `select operation_id, state, attempts, last_error from outbox_operations
         where state in ('pending', 'sending') or next_attempt_at is not null
         union all select null, 'wake', 0, null from outbox_wakes limit 5`,
      ),
    (rows) => rows.length === 0,
    withinMs,
  )
}

async function statesOf(bench: Probe): Promise<Record<string, number>> {
  const rows = await bench.rows<{ state: string; n: number }>(
    `select state, count(*)::int as n from outbox_operations group by state`,
  )
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
}
