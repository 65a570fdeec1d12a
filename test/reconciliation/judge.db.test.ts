import { afterEach, describe, expect, it } from 'vitest'
import { comparisonOf } from '../../src/compose/comparison.ts'
import { partsOf } from '../../src/hookledger.ts'
import type {
  Comparison,
  ConfiguredSourceLike,
  FetchRecord,
} from '../../src/reconciliation/ports.ts'
import { RecordsError } from '../../src/workflow/records.ts'
import { createCompareProbe, type CompareProbe } from '../support/compare-probe.ts'
import { probe } from '../support/probe.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Judging {
  readonly made: CompareProbe
  readonly comparison: Comparison
  readonly source: ConfiguredSourceLike
  readonly fetch: FetchRecord
}

async function create(options: Parameters<typeof createCompareProbe>[0] = {}): Promise<Judging> {
  const made = await createCompareProbe(options)
  closing.push(made.close)
  const parts = partsOf(made.hookledger)
  const installed = await parts.installation()
  const { config, signals } = parts
  const { comparison } = comparisonOf({ db: made.db, installed, config, signals })
  const source = config.sources.get('probe') as ConfiguredSourceLike
  const signal = new AbortController().signal
  return {
    made,
    comparison,
    source,
    fetch: (_, reference) => made.records.fetch(reference, signal),
  }
}

const p1 = { kind: 'payment', id: 'p1', account: 'acct_1' }

async function idOf({ rows }: CompareProbe, kind: string): Promise<string> {
  const [row] = await rows<{ id: string }>(
    `select finding_id::text as id from findings where kind = $1`,
    [kind],
  )
  return row?.id ?? ''
}

describe('judgeReference', () => {
  it('agrees, differs, or says that a record is too young to tell, and writes nothing', async () => {
    const { made, comparison, source, fetch } = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    const payment = made.pays('p1', { order: '1' })
    const judge = (settledBefore?: Date): ReturnType<Comparison['judgeReference']> =>
      comparison.judgeReference(source, p1, fetch, settledBefore)
    expect(await judge()).toMatchObject({ verdict: 'agrees', discrepancies: [], reference: p1 })
    payment.standing = 'failed'
    expect(await judge()).toMatchObject({
      verdict: 'differs',
      record: { id: 'p1' },
      discrepancies: [{ draft: { kind: 'paid_here' }, orderId: '1', reference: p1 }],
    })
    payment.agoMs = 0
    expect(await judge(new Date(Date.now() - 60_000))).toMatchObject({ verdict: 'young' })
    made.loses('p1')
    expect(await judge()).toMatchObject({
      verdict: 'differs',
      record: null,
      discrepancies: [{ draft: { kind: 'paid_here', figures: { there: 'no such record' } } }],
    })
    expect(await made.findings()).toEqual([])
  })
})

describe('judgeFinding', () => {
  it('says whether both sides agree about what the finding compares, and closes nothing', async () => {
    const { made, comparison, fetch } = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    const payment = made.pays('p1', { order: '1', standing: 'unpaid' })
    await made.pass()
    const id = await idOf(made, 'paid_here')
    expect(await comparison.judgeFinding(id, fetch)).toBe(false)
    payment.standing = 'paid'
    expect(await comparison.judgeFinding(id, fetch)).toBe(true)
    expect(await made.findings()).toMatchObject([{ kind: 'paid_here', state: 'open', times: 1 }])
  })

  it('asks this database about what only it can tell', async () => {
    const { made, comparison, fetch } = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    made.pays('p1', { order: '1' })
    await made.rows(`update orders set state = 'refunded'`)
    await made.pass()
    const id = await idOf(made, 'tampered')
    expect(await comparison.judgeFinding(id, fetch)).toBe(false)
    expect(await comparison.judgeOrder('1')).toMatchObject([{ draft: { kind: 'tampered' } }])
    await made.rows(`update orders set state = 'paid'`)
    expect(await comparison.judgeFinding(id, fetch)).toBe(true)
    expect(await comparison.judgeOrder('1')).toEqual([])
  })

  it('cannot tell of what only a decision found, nor of a finding that there is not', async () => {
    const { made, comparison, fetch } = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.deliver(probe('note', { order: '1', learns: 'x' }))
    await made.work()
    await made.deliver(probe('note', { order: '2', learns: 'x' }))
    await made.work()
    expect(await comparison.judgeFinding(await idOf(made, 'name_of_other_order'), fetch)).toBeNull()
    const nobody = '00000000-0000-4000-8000-000000000000'
    expect(await comparison.judgeFinding(nobody, fetch)).toBeNull()
  })
})

describe('a connected account', () => {
  it('that took back its consent does not keep the others from being compared', async () => {
    const { made } = await create({ connect: ['acct_gone'], accounts: ['acct_1'] })
    const gone = { ...probe('pay', { order: '9', payment: 'p9' }), account: 'acct_gone' }
    await made.deliver(gone, probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    const { fetch } = made.records
    made.records.fetch = async (reference, signal) => {
      if (reference.account === 'acct_gone') throw new RecordsError('refused', 'no access')
      return fetch(reference, signal)
    }
    expect(await made.pass()).toMatchObject({ state: 'complete', opened: 1 })
    expect(await made.findings()).toMatchObject([{ kind: 'paid_here', order_id: '1' }])
  })
})
