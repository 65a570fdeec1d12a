import { describe, expect, it } from 'vitest'
import type { ProviderApi } from '../../src/workflow/provider-api.ts'
import { mirrored, skip } from '../../src/workflow/decision.ts'
import { arrivals, proveSubscriptions } from '../support/subscription-campaign.ts'
import type { SubscriptionObject } from '../support/subscription-living.ts'
import type { SubscriptionApi } from '../support/subscription-provider.ts'
import {
  createSubscriptionProof,
  type SubscriptionProofOptions,
} from '../support/subscription-proof.ts'
import {
  subscriptionWorkflow,
  type SubscriptionEvent,
  type SubscriptionParts,
} from '../support/subscription-workflow.ts'

/** A mistake, and what must be said of it. */
interface Mistake {
  readonly options?: SubscriptionProofOptions
  /** A trigger in the database; `new` and `old` as everywhere. */
  readonly trigger?: { readonly on: string; readonly body: string }
  readonly complaint: RegExp
}

const workflow = (parts: SubscriptionParts): SubscriptionProofOptions => ({
  workflow: subscriptionWorkflow(parts),
})

/** The source with its API asked in another way. */
const asked = (change: (api: ProviderApi) => Partial<ProviderApi>): SubscriptionProofOptions => ({
  source: (source) => {
    const { calls } = source
    if (calls === undefined) throw new Error('the source has no API')
    return { ...source, calls: { ...calls, ...change(calls) } }
  },
})

const kept = new Map<string, Promise<SubscriptionObject>>()

const mistakes: Readonly<Record<string, Mistake>> = {
  'decides from the snapshot that the event carries': {
    options: workflow({
      current: ({ event }) => (event as unknown as SubscriptionEvent).data.object,
    }),
    complaint: /is \w+, must be \w+/,
  },
  'takes what is gone for unchanged': {
    options: workflow({
      decide: (input, usual) => (input.current === null ? skip('it is gone') : usual()),
    }),
    complaint: /must be gone/,
  },
  'gives access in a state in which nothing is paid': {
    options: workflow({
      decide: (input, usual) =>
        (input.current as SubscriptionObject | null)?.status === 'unpaid'
          ? mirrored({
              to: 'active',
              entitle: [{ subject: 'org:1', entitlement: 'team', quantity: 77 }],
            })
          : usual(),
    }),
    complaint: /team":"77 -"}, which nothing ever justified/,
  },
  'answers from memory': {
    options: workflow({
      fetch: ({ api, object }) => {
        const known = kept.get(object.value) ?? api.subscription(object.value)
        known.catch(() => kept.delete(object.value))
        kept.set(object.value, known)
        return known
      },
    }),
    complaint: /M1_answer_older_than_its_event/,
  },
  'takes a failure for an answer': {
    options: asked(({ failureOf }) => ({
      failureOf: (error) => {
        const failure = failureOf(error)
        return failure.kind === 'later' ? { kind: 'gone', text: failure.text } : failure
      },
    })),
    complaint: /is gone, must be \w+/,
  },
  'asks about another subscription': {
    options: asked(({ client }) => ({
      client: (account, signal): SubscriptionApi => {
        const api = client(account, signal) as SubscriptionApi
        return { ...api, subscription: (id) => api.subscription(id.replace(/1$/, '2')) }
      },
    })),
    complaint: /sub_\d*1.* which nothing ever justified/,
  },
  'lets an event join a request that was sent before it came': {
    trigger: {
      on: 'insert or update on inbox_gathers',
      body: 'new.wanted := greatest(new.wanted - 1, 1);',
    },
    complaint: /M1_answer_older_than_its_event/,
  },
  'loses an event that was answered': {
    trigger: {
      on: 'insert on inbox_ready',
      body: 'if new.event_key % 9 = 0 and exists (select from hookledger.inbox_gathers g where g.event_key = new.event_key) then return null; end if;',
    },
    complaint: /I11_no_home/,
  },
  'records not what it decided from': {
    trigger: { on: 'insert on ledger_decisions', body: `new.evidence := new.evidence - 'fetch';` },
    complaint: /M2_decided_without_a_look/,
  },
  'records another answer than it decided from': {
    trigger: {
      on: 'insert on ledger_decisions',
      body: `new.evidence := jsonb_set(new.evidence, '{fetch,evidence}', to_jsonb(((new.evidence -> 'fetch' ->> 'evidence')::bigint + 1)::text));`,
    },
    complaint: /M2_decided_without_a_look/,
  },
  'leaves access as it was': {
    trigger: {
      on: 'update on entitlements',
      body: 'new.active := old.active; new.quantity := old.quantity;',
    },
    complaint: /which nothing ever justified|access, org/,
  },
}

/** A world with a little of everything, told in any order to slow gatherers. */
async function complaints({ options = {}, trigger }: Partial<Mistake>): Promise<string> {
  kept.clear()
  const proof = await createSubscriptionProof(options)
  try {
    if (trigger !== undefined)
      await proof.pool.query(
        `create function public.mistake() returns trigger language plpgsql as $$ begin ${trigger.body} return new; end $$;
         create trigger mistake before ${trigger.on} for each row execute function public.mistake()`,
      )
    const work = {
      workers: 2,
      gatherers: 2,
      latency: { beforeMs: 5, afterMs: 250, limited: 0.02, broken: 0.02 },
      tickMs: 40,
    }
    const arrival = arrivals['neighbors swapped']
    if (arrival === undefined) throw new Error('no such arrival')
    return (
      await proveSubscriptions(proof, 'mutants', { lives: 90, ticks: 25, arrival }, work)
    ).wrong.join('\n')
  } finally {
    await proof.close()
  }
}

describe('the proofs of mirrors', () => {
  it('see nothing wrong in the world that the mistakes are made in', async () => {
    expect(await complaints({})).toBe('')
  })

  it.each(Object.entries(mistakes))('catch an engine that %s', async (_, mistake) => {
    expect(await complaints(mistake)).toMatch(mistake.complaint)
  })
})
