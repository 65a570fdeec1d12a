import { describe, expect, it } from 'vitest'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { mostCalls } from '../support/call-budgets.ts'
import { wrongAfterPlay } from '../support/subscription-judging.ts'
import {
  createSubscriptionProof,
  type PlayedWorld,
  type SubscriptionProof,
  type SubscriptionProofOptions,
} from '../support/subscription-proof.ts'
import { actualEnds } from '../support/subscription-tables.ts'
import {
  orderOf,
  subscriptionWorkflow,
  type SubscriptionEvent,
} from '../support/subscription-workflow.ts'
import { factEvent, makeSubscriptionWorld, type ToldBody } from '../support/subscription-world.ts'

const seed = process.env['HOOKLEDGER_SEED'] || '1'
const budgets = { callsPerSecond: 150, callsPerSecondPerAccount: 4, firstRetryMs: 50 }
const work = {
  workers: 2,
  gatherers: 2,
  latency: { beforeMs: 8, afterMs: 8, limited: 0, broken: 0.02 },
  tickMs: 5,
}

interface Platform {
  readonly accounts: number
  readonly lives: number
  readonly options?: SubscriptionProofOptions
  /** Put into the database before anything happens. */
  readonly mistake?: string
}

/** A platform whose accounts have subscriptions with the same ids; what went wrong, and how much was asked. */
async function playPlatform({ accounts, lives, options, mistake }: Platform): Promise<{
  readonly wrong: readonly string[]
  readonly calls: number
}> {
  const proof = await createSubscriptionProof({
    // an event may name an order of another account, as a forged or confused one would
    workflow: subscriptionWorkflow({
      order: (event, id) => (id.includes('/') ? id : orderOf(event, id)),
    }),
    options: { gather: budgets },
    ...options,
  })
  try {
    if (mistake !== undefined) await proof.pool.query(mistake)
    const world = makeSubscriptionWorld(createRandom(`${seed}/connect`), {
      lives,
      ticks: 40,
      accounts: Array.from({ length: accounts }, (_, at) => `acct_${at + 1}`),
      arrival: { late: 0.5, lateTicks: 20, again: 0.2, lost: 0 },
      base: Math.floor(Date.now() / 1000) - 7200,
    })
    const played = await proof.play(`${seed}.connect`, world, work)
    const wrong = await wrongAfterPlay(proof, played)
    if (wrong.length === 0) wrong.push(...(await wrongAfterConfusion(proof, played)))
    return { wrong: [...wrong, ...overspent(played)], calls: played.provider.calls.length }
  } finally {
    await proof.close()
  }
}

/** Events that name orders of other accounts: facts, and looks. */
function confusedEvents(proof: SubscriptionProof, { world }: PlayedWorld): ToldBody[] {
  return world.lives.flatMap((life, at): ToldBody[] => {
    const victim = world.lives[(at + 1) % world.lives.length]
    const look = (world.told.get(life) ?? []).find(({ type }) => proof.looksAt(type))
    if (at % 10 !== 0 || victim === undefined || look === undefined) return []
    const theirs = { ...victim, id: orderOf(victim, victim.id) }
    const { account } = life
    const head = { id: `evt_confused_${at}`, created: 1, account, livemode: false as const }
    const fact = { fact: 'paid' as const, invoice: `in_confused_${at}`, amount: 1 }
    const object = { ...(look as SubscriptionEvent).data.object, id: theirs.id }
    return [
      factEvent(theirs, fact, head),
      { ...head, id: `${head.id}_look`, type: 'customer.subscription.updated', data: { object } },
    ]
  })
}

async function wrongAfterConfusion(
  proof: SubscriptionProof,
  played: PlayedWorld,
): Promise<readonly string[]> {
  const confused = confusedEvents(proof, played)
  const before = JSON.stringify([...(await actualEnds(proof.pool))].sort())
  const calls = played.provider.calls.length
  await proof.tell(confused, work)
  const after = JSON.stringify([...(await actualEnds(proof.pool))].sort())
  const { rows } = await proof.pool.query<{ n: number }>(
    `select count(*)::integer as n from ledger_decisions d join inbox_events e on e.event_key = d.event_key
     where e.event_id like 'evt_confused_%' and d.kind = 'contradicted'`,
  )
  return [
    ...(after === before ? [] : ['an order changed by an event of another account']),
    ...(played.provider.calls.length === calls ? [] : ['asked for an event of another account']),
    ...(rows[0]?.n === confused.length ? [] : [`contradicted ${rows[0]?.n} of ${confused.length}`]),
  ]
}

/** Half a second's worth is saved up at most; the rest is what a busy machine lets come together. */
function overspent({ provider }: PlayedWorld): string[] {
  const { ofAll, ofOne } = mostCalls(provider.calls, 1000)
  return [
    ...(ofAll > 2 * budgets.callsPerSecond ? [`${ofAll} calls within a second`] : []),
    ...(ofOne > 2 * budgets.callsPerSecondPerAccount
      ? [`${ofOne} calls of one account within a second`]
      : []),
  ]
}

const spendthrift = (budget: string): string =>
  `create function public.spendthrift() returns trigger language plpgsql as $$ begin
     if new.budget like '${budget}:%' then new.tokens := 10000; end if; return new; end $$;
   create trigger spendthrift before insert or update on fetch_budgets for each row execute function public.spendthrift()`

describe('a platform with 200 accounts, whose subscriptions bear the same ids in each', () => {
  it('touches no order of one account by an event of another, and keeps the budgets of calls', async () => {
    const { wrong, calls } = await playPlatform({ accounts: 200, lives: 400 })
    expect(wrong).toEqual([])
    expect(calls).toBeGreaterThan(400)
  }, 60_000)

  it('is seen to go wrong where every account is asked for the objects of the first', async () => {
    const { wrong } = await playPlatform({
      accounts: 5,
      lives: 30,
      options: {
        options: { gather: { ...budgets, callsPerSecondPerAccount: 1000 } },
        source: (source) => {
          const { calls } = source
          if (calls === undefined) throw new Error('the source has no API')
          const client: typeof calls.client = (_, signal) => calls.client('acct_1', signal)
          return { ...source, calls: { ...calls, client } }
        },
      },
    })
    expect(wrong.join('\n')).toMatch(/acct_\d\/sub_\d+ is \w+, must be \w+/)
  }, 60_000)

  it('is seen to overspend where a budget is always full', async () => {
    const { wrong } = await playPlatform({
      accounts: 2,
      lives: 60,
      mistake: spendthrift('account'),
    })
    expect(wrong.join('\n')).toMatch(/\d+ calls of one account within a second/)
  }, 60_000)
})
