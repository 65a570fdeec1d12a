import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Records } from '../../src/workflow/records.ts'
import { createReconcileProof, type ReconcileProof } from '../support/reconcile-proof.ts'
import { proveWorld } from '../support/reconcile-proving.ts'

/** Mistakes of a reconciler, made where it asks the provider, and what the oracle must say of them. */
const askedWrongly: readonly (readonly [string, RegExp, (records: Records) => Partial<Records>])[] =
  [
    [
      'leaves the first records of every page out',
      /L2_missing|I13_checkpoint_ahead/,
      (records) => ({
        list: async (query) => {
          const page = await records.list(query)
          return { ...page, records: page.records.slice(20) }
        },
      }),
    ],
    [
      'never asks for a second page',
      /L2_missing|I13_checkpoint_ahead/,
      (records) => ({
        list: async (query) => ({ ...(await records.list({ ...query, limit: 5 })), next: null }),
      }),
    ],
    [
      'makes no events of objects',
      /missed: event_missing/,
      (records) => ({
        eventsOf: (record) => (record.kind === 'event' ? records.eventsOf(record) : []),
      }),
    ],
    [
      'makes events under another id each time',
      /invented: event_missing|no event of the provider/,
      (records) => {
        let made = 0
        return {
          eventsOf: (record) =>
            records
              .eventsOf(record)
              .map((event) =>
                record.kind === 'event'
                  ? { ...event, eventId: `${event.eventId}_${++made}` }
                  : event,
              ),
        }
      },
    ],
    [
      'puts in what is there already, when it comes by again',
      /second pass: (inbox_events|ledger_decisions) \+/,
      (records) => {
        const seen = new Map<string, number>()
        return {
          list: async (query) => {
            const page = await records.list(query)
            for (const { id } of page.records) seen.set(id, (seen.get(id) ?? 0) + 1)
            return page
          },
          eventsOf: (record) =>
            records
              .eventsOf(record)
              .map((event) =>
                record.kind === 'event' && (seen.get(record.id) ?? 0) > 1
                  ? { ...event, eventId: `${event.eventId}_again` }
                  : event,
              ),
        }
      },
    ],
    [
      'reads no facts',
      /missed: (refunded_there|dispute_unseen|paid_there|amount_differs)/,
      () => ({ factsOf: () => [] }),
    ],
    [
      'takes every refund for one that failed',
      /missed: refunded_there/,
      (records) => ({
        factsOf: (record) =>
          records
            .factsOf(record)
            .map((fact) => (fact.fact === 'refund' ? { ...fact, standing: 'failed' } : fact)),
      }),
    ],
    [
      'takes every record that it looks up for gone',
      /missed|invented|not open/,
      () => ({ fetch: () => Promise.resolve(null) }),
    ],
    [
      'takes what is not paid for paid',
      /missed: paid_here/,
      (records) => ({
        factsOf: (record) =>
          records
            .factsOf(record)
            .map((fact) => (fact.fact === 'payment' ? { ...fact, standing: 'paid' } : fact)),
      }),
    ],
  ]

/** Mistakes of its statements, made by triggers. */
const wroteWrongly: readonly (readonly [string, RegExp, string])[] = [
  [
    'writes no finding down',
    /missed: /,
    `if new.kind in ('tampered', 'paid_here', 'refunded_there', 'order_stuck') then return null; end if; return new;`,
  ],
  [
    'calls a contradiction lag',
    /not contradiction: /,
    `if new.kind in ('tampered', 'paid_here', 'refunded_there') then new.class := 'lag'; end if; return new;`,
  ],
]

let proof: ReconcileProof
let mistake: ((records: Records) => Partial<Records>) | undefined
beforeAll(async () => {
  proof = await createReconcileProof({
    records: (records) => {
      // asked anew at each call, so that one shop serves every mistake
      const asked = (): Records => ({ ...records, ...current(records) })
      return {
        ...records,
        list: (query) => asked().list(query),
        fetch: (reference, signal) => asked().fetch(reference, signal),
        eventsOf: (record) => asked().eventsOf(record),
        factsOf: (record) => asked().factsOf(record),
      }
    },
  })
})
afterAll(() => proof.close())

let made: { readonly of: typeof mistake; readonly records: Partial<Records> } | undefined
function current(records: Records): Partial<Records> {
  if (made?.of !== mistake) made = { of: mistake, records: mistake?.(records) ?? {} }
  return made?.records ?? {}
}

/** A small world with a little of everything. */
const prove = async (): Promise<readonly string[]> =>
  (await proveWorld(proof, 'mutants.214', 18, { seeded: 0.6, mixed: 0 })).wrong

describe('the proofs of reconciliation', () => {
  it('see nothing wrong in the world that the mistakes are made in', async () => {
    mistake = undefined
    expect(await prove()).toEqual([])
  })

  it.each(askedWrongly)('catch a reconciler that %s', async (_, complaint, wrongly) => {
    mistake = wrongly
    expect(await prove()).toContainEqual(expect.stringMatching(complaint))
  })

  it.each(wroteWrongly)('catch a reconciler that %s', async (_, complaint, body) => {
    mistake = undefined
    await proof.pool.query(
      `create function public.mistake() returns trigger language plpgsql as $$ begin ${body} end $$;
       create trigger mistake before insert on findings for each row execute function public.mistake()`,
    )
    try {
      expect(await prove()).toContainEqual(expect.stringMatching(complaint))
    } finally {
      await proof.pool.query(`drop trigger mistake on findings; drop function public.mistake()`)
    }
  })
})
