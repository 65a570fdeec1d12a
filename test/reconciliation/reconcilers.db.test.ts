/** More than one at work: reconcilers beside one another, and webhooks that come while a pass runs. */
import { afterEach, describe, expect, it } from 'vitest'
import { installFailpoints } from '../../src/core/failpoints.ts'
import type { PassOptions } from '../../src/reconciliation/pass-report.ts'
import { probe, until } from '../support/probe.ts'
import {
  checkpointOf,
  createReconcileProbe,
  doors,
  type ReconcileProbe,
  type ReconcileProbeOptions,
} from '../support/reconcile-probe.ts'
import { listed } from '../support/scripted-records.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  installFailpoints(null)
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(options?: ReconcileProbeOptions): Promise<ReconcileProbe> {
  const made = await createReconcileProbe(options)
  closing.push(made.close)
  return made
}

const minute = 60_000
const month = 30 * 86_400_000
const byHand: PassOptions = { how: 'manual', actor: 'test' }

function fill(made: ReconcileProbe, count: number): void {
  for (let at = 0; at < count; at++) {
    const body = probe('note', { id: `evt_${String(at).padStart(3, '0')}`, order: `o${at % 5}` })
    made.records.held.push(listed(body, (at + 1) * minute))
  }
}

/** A gate that lets nobody through until so many have come. */
function barrier(count: number): () => Promise<void> {
  let waiting = count
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return async () => {
    if (--waiting <= 0) open()
    await opened
  }
}

describe('two reconcilers', () => {
  it('put every event in once, and both come to their end', async () => {
    const made = await create({ pageSize: 3, settings: { sliceMs: month } })
    fill(made, 40)
    const other = await made.other()
    // slow answers: the two are at the same pages again and again
    made.records.beforeAnswer = () =>
      new Promise((resolve) => setTimeout(resolve, Math.random() * 8))
    const [first, second] = await Promise.all([made.pass(), other.pass(byHand)])
    expect([first.state, second.runs[0]?.state]).toEqual(['complete', 'complete'])
    expect(first.injected + (second.runs[0]?.injected ?? 0)).toBe(40)
    expect(Object.keys(await doors(made))).toHaveLength(40)
    expect(await made.rows(`select count(*)::int as n from findings where state = 'open'`)).toEqual(
      [{ n: 0 }],
    )
    expect((await checkpointOf(made)).inWork).toBe(false)
  })

  it('at the same page: one moves the checkpoint, the other writes nothing and goes on from there', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    fill(made, 8)
    const other = await made.other()
    const both = barrier(2)
    let met = false
    made.records.beforeAnswer = async ({ cursor }) => {
      if (cursor === null && !met) await both().then(() => (met = true))
    }
    const runs = await Promise.all([made.pass(), other.pass(byHand)])
    expect(runs[0].state).toBe('complete')
    expect(runs[1].complete).toBe(true)
    expect(Object.keys(await doors(made))).toHaveLength(8)
    const injected = runs[0].injected + (runs[1].runs[0]?.injected ?? 0)
    expect(injected).toBe(8)
  })

  it('do not both begin a scheduled pass that one has begun', async () => {
    const made = await create({ settings: { everyMs: 60_000 } })
    fill(made, 3)
    const others = await Promise.all([made.other(), made.other()])
    const all = [made.reconciler, ...others]
    for (const [at, reconciler] of all.entries()) {
      reconciler.start()
      if (at === 0)
        await until(
          () => made.rows(`select state from reconciliation_runs`),
          ([row]) => row?.['state'] === 'complete',
        )
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
    await Promise.all(all.map((each) => each.stop(2000)))
    expect(await made.rows(`select how, state from reconciliation_runs`)).toEqual([
      { how: 'deep', state: 'complete' },
    ])
  })

  it('go on with the schedule when it is time again', async () => {
    const made = await create({ settings: { everyMs: 200 } })
    made.reconciler.start()
    const runs = await until(
      () =>
        made.rows(
          `select how from reconciliation_runs where state = 'complete' order by started_at`,
        ),
      (found) => found.length >= 3,
    )
    expect(await made.reconciler.stop(2000)).toBe(true)
    expect(runs.slice(0, 3)).toEqual([{ how: 'deep' }, { how: 'scheduled' }, { how: 'scheduled' }])
  })
})

describe('hookledger.start', () => {
  it('runs passes beside its worker, and stop ends them', async () => {
    const made = await create({ decides: false, settings: { everyMs: 200 } })
    fill(made, 3)
    await made.hookledger.start()
    await until(
      () => made.rows(`select state from webhook_inbox`),
      (found) => found.length === 3 && found.every((row) => row['state'] === 'processed'),
    )
    await until(
      () => made.rows(`select state from reconciliation_runs where state = 'complete'`),
      (found) => found.length > 0,
    )
    await made.hookledger.stop()
    const before = await made.rows(`select count(*)::int as n from reconciliation_runs`)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(await made.rows(`select count(*)::int as n from reconciliation_runs`)).toEqual(before)
    expect(
      await made.rows(`select count(*)::int as n from reconciliation_runs where state = 'running'`),
    ).toEqual([{ n: 0 }])
  })

  it('runs none where the configuration says so', async () => {
    const made = await create()
    fill(made, 1)
    const quiet = made.another({ reconcile: false })
    await quiet.start()
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(await made.rows(`select from reconciliation_runs`)).toEqual([])
  })
})

describe('a webhook and a pass', () => {
  it('that store the same event at once store it once', async () => {
    const made = await create({ pageSize: 50, settings: { sliceMs: month } })
    const bodies = Array.from({ length: 30 }, (_, at) =>
      probe('note', { id: `evt_race_${at}`, order: `o${at % 4}` }),
    )
    made.records.held.push(...bodies.map((body) => listed(body, minute)))
    let deliveries: Promise<void> = Promise.resolve()
    made.records.beforeAnswer = () => {
      if (made.records.asked.length > 1) return
      deliveries = made.deliver(...bodies)
    }
    const run = await made.pass()
    await deliveries
    await made.work()
    expect(run.state).toBe('complete')
    expect(Object.keys(await doors(made))).toHaveLength(30)
    expect(await made.rows(`select count(*)::int as n from fulfillment_effects`)).toEqual([
      { n: 30 },
    ])
    expect(await made.rows(`select count(*)::int as n from deliveries`)).toEqual([{ n: 30 }])
  })

  it.each([
    ['the webhook came first and is not committed yet', 'R5' as const],
    ['the pass came first and is not committed yet', 'C2' as const],
  ])('answer and end when %s', async (_, step) => {
    const made = await create()
    const body = probe('note', { id: 'evt_held', order: '1' })
    made.records.held.push(listed(body, minute))
    let held = false
    installFailpoints(async (reached) => {
      if (reached !== step || held) return
      held = true
      await new Promise((resolve) => setTimeout(resolve, 150))
    })
    const [run] = await Promise.all([made.pass(), made.deliver(body)])
    await made.work()
    expect(run.state).toBe('complete')
    expect(Object.keys(await doors(made))).toEqual(['evt_held'])
    const found = await made.rows(`select count(*)::int as n from findings where state = 'open'`)
    expect(found).toEqual([{ n: 0 }])
  })
})
