import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DispatchContext, FinishedAttempt } from '../../src/outbox/dispatch-context.ts'
import { runRound } from '../../src/outbox/round.ts'
import type { RoundReport, RoundRequest } from '../../src/outbox/round-report.ts'
import { runUsualRound } from '../../src/outbox/usual-round.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { done, scripted, unknown } from '../support/scripted-destination.ts'

const mail = scripted({ concurrency: 4 })
const ordered = scripted({ sequence: 'order' })
let bench: OutboxBench
let contexts: Record<'mail' | 'ordered', DispatchContext>

beforeAll(async () => {
  bench = await createOutboxBench({ mail, ordered })
  const context = (name: 'mail' | 'ordered'): DispatchContext => ({
    db: createDatabase(bench.pool, 'hookledger'),
    name,
    destination: name === 'mail' ? mail : ordered,
    findings: { parts: () => [] },
    signals: bench.parts.signals,
    dispatcher: 'test',
    batch: 200,
    lockTimeoutMs: 500,
  })
  contexts = { mail: context('mail'), ordered: context('ordered') }
})
afterAll(() => bench.close())
beforeEach(() => bench.clear())

type Results = RoundRequest['finished']

const request = (finished: Results, wanted: number): RoundRequest => ({
  finished,
  wanted,
  sweeps: false,
  from: '-infinity',
  others: false,
})
const usual = (
  finished: Results = [],
  wanted = 10,
  to: 'mail' | 'ordered' = 'mail',
): Promise<RoundReport | null> => runUsualRound(contexts[to], request(finished, wanted))

const ended = (
  operation: RoundReport['leased'][number] | undefined,
  outcome: FinishedAttempt['outcome'] = done,
): FinishedAttempt => {
  if (operation === undefined) throw new Error('nothing was leased')
  return { operation, outcome, finishedAt: performance.now() }
}

const destinationRow = async (name: string): Promise<unknown> =>
  (
    await bench.rows('select under_way, failures from outbox_destinations where destination = $1', [
      name,
    ])
  )[0]

/** Everything about an operation but what differs from one to the next: ids, times, the number of its lease. */
async function written(id: string): Promise<unknown> {
  const [row] = await bench.rows(
    `select to_jsonb(o) - array['operation_id', 'sequence', 'name', 'request_sha256', 'request_bytes', 'created_at',
        'xid', 'lease', 'first_attempt_at', 'finished_at', 'leased_until']
        || jsonb_build_object('leased', lease is not null, 'first', first_attempt_at is not null, 'over', finished_at is not null,
          'attempts', (select jsonb_agg(to_jsonb(a) - array['attempt_id', 'operation_id', 'lease', 'started_at']
            || coalesce(to_jsonb(w) - array['attempt_id', 'answered_at'], '{}'))
            from outbox_attempts a left join outbox_answers w on w.attempt_id = a.attempt_id
            where a.operation_id = o.operation_id)) as row
     from outbox_operations o where operation_id = $1`,
    [id],
  )
  return row?.['row']
}

describe('a usual round', () => {
  it('writes what the longer way writes, at the lease and at the end', async () => {
    const short = await bench.add('mail', 'short')
    const [one] = (await usual())?.leased ?? []
    const long = await bench.add('mail', 'long')
    const [other] = (await runRound(contexts.mail, { ...request([], 10), others: true })).leased
    expect(one).toMatchObject({ operationId: short, request: other?.request && expect.anything() })
    expect({ ...one, operationId: '', attemptId: '', lease: '', request: '', ageMs: 0, leasedAt: 0, recordedAt: null })
      .toEqual({ ...other, operationId: '', attemptId: '', lease: '', request: '', ageMs: 0, leasedAt: 0, recordedAt: null }) // prettier-ignore
    expect(await written(short)).toEqual(await written(long))
    expect(await destinationRow('mail')).toEqual({ under_way: 2, failures: 0 })
    const report = await usual([ended(one)], 0)
    expect(report?.settled).toMatchObject([
      { held: true, lateProof: false, step: { state: 'sent' } },
    ])
    await runRound(contexts.mail, { ...request([ended(other)], 0), others: true })
    expect(await written(short)).toEqual(await written(long))
    expect(await bench.operation(short)).toMatchObject({ state: 'sent', lease: null })
    expect(await destinationRow('mail')).toEqual({ under_way: 0, failures: 0 })
  })

  it('leases no more than the destination takes at once, over all dispatchers', async () => {
    for (let n = 0; n < 6; n++) await bench.add('mail', `many ${n}`)
    const first = await usual()
    expect(first?.leased).toHaveLength(4)
    expect((await usual())?.leased).toHaveLength(0)
    const next = await usual((first?.leased ?? []).slice(0, 1).map((each) => ended(each)))
    expect(next?.leased).toHaveLength(1)
  })

  it('wakes the order of what was sent', async () => {
    await bench.add('mail', 'of an order', {}, 'order-1')
    const [operation] = (await usual())?.leased ?? []
    await usual([ended(operation)], 0)
    expect(await bench.rows('select order_id from outbox_wakes')).toEqual([{ order_id: 'order-1' }])
  })

  it('takes the operations of an order one after the other where the destination says so', async () => {
    const first = await bench.add('ordered', 'first', {}, 'order-2')
    const second = await bench.add('ordered', 'second', {}, 'order-2')
    const round = await usual([], 10, 'ordered')
    expect(round?.leased.map((each) => each.operationId)).toEqual([first])
    expect(round?.others).toBe(true)
    // the longer way puts it off, and the end of the first one makes it due at once
    await runRound(contexts.ordered, { ...request([], 10), others: true })
    const next = await usual([ended(round?.leased[0])], 10, 'ordered')
    expect(next?.leased.map((each) => each.operationId)).toEqual([second])
  })

  it('says no to a result that was not simply sent, with nothing written', async () => {
    const id = await bench.add('mail', 'who knows')
    const [operation] = (await usual())?.leased ?? []
    const before = await bench.operation(id)
    expect(await usual([ended(operation, unknown)])).toBeNull()
    expect(await bench.operation(id)).toEqual(before)
  })

  it('says no where a lease is lost, with nothing written, and the longer way keeps the answer as late', async () => {
    const lost = await bench.add('mail', 'lost')
    const kept = await bench.add('mail', 'kept')
    const leased = (await usual())?.leased ?? []
    await bench.rows(
      `update outbox_operations set lease = nextval('outbox_lease_seq') where operation_id = $1`,
      [lost],
    )
    const results = leased.map((each) => ended(each))
    expect(await usual(results)).toBeNull()
    expect(await bench.operation(kept)).toMatchObject({ state: 'sending' })
    const report = await runRound(contexts.mail, request(results, 0))
    expect(report.settled.filter((each) => each.held)).toHaveLength(1)
    expect(await bench.attempts(lost)).toMatchObject([{ outcome: 'sent', late: true }])
    expect(await bench.attempts(kept)).toMatchObject([{ outcome: 'sent', late: false }])
  })

  it.each(['failures = 1', `closed_until = now() + interval '1 minute'`])(
    'says no to a destination of which there is more to think about (%s)',
    async (set) => {
      await bench.add('mail', `careful ${set}`)
      await bench.rows(`update outbox_destinations set ${set}`)
      expect(await usual()).toBeNull()
    },
  )

  it('leaves what is not new where it is, and tells of it', async () => {
    const again = await bench.add('mail', 'again')
    await bench.rows(
      `update outbox_operations set state = 'uncertain', attempts = 1, first_attempt_at = now(), uncertain_since = now() where operation_id = $1`,
      [again],
    )
    const fresh = await bench.add('mail', 'fresh')
    const round = await usual()
    expect(round?.leased.map((each) => each.operationId)).toEqual([fresh])
    expect(round).toMatchObject({ others: true, until: null })
    expect(await bench.operation(again)).toMatchObject({ state: 'uncertain', lease: null })
  })

  it('reads through no table, whatever its statistics say', async () => {
    await bench.rows('analyze outbox_operations')
    await bench.rows(
      `insert into outbox_operations (operation_id, destination, name, request_sha256, request_bytes, promise, window_ms,
         state, next_attempt_at, finished_at)
       select gen_random_uuid(), 'mail', 'old ' || n, '\\x00', 1, 'once', 1, 'sent', null, now() from generate_series(1, 5000) n`,
    )
    const scans = async (): Promise<number> => {
      await bench.rows('select pg_stat_force_next_flush()').catch(() => [])
      const [row] = await bench.rows<{ n: string }>(
        `select sum(seq_tup_read) as n from pg_stat_user_tables
         where relname in ('outbox_operations', 'outbox_attempts', 'outbox_answers', 'outbox_requests')`,
      )
      return Number(row?.n)
    }
    await bench.add('mail', 'planned')
    const before = await scans()
    for (let n = 0; n < 3; n++) {
      const { leased } = (await usual()) ?? { leased: [] }
      await usual(leased.map((each) => ended(each)), 0) // prettier-ignore
    }
    await new Promise((resolve) => setTimeout(resolve, 1200))
    expect((await scans()) - before).toBe(0)
  })
})
