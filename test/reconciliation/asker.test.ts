import { describe, expect, it } from 'vitest'
import { createAsker } from '../../src/reconciliation/asker.ts'
import { BudgetSpent } from '../../src/reconciliation/pass-context.ts'
import type { Asker } from '../../src/reconciliation/pass-context.ts'
import { RecordsError } from '../../src/workflow/records.ts'
import {
  garbage,
  listed,
  scriptedRecords,
  unavailable,
  type ScriptedRecords,
} from '../support/scripted-records.ts'

const query = {
  kind: 'event',
  account: 'acct_1',
  from: new Date(0),
  to: new Date(),
  cursor: null,
}

function ask(
  records: ScriptedRecords,
  options: { budget?: number; callsPerSecond?: number; signal?: AbortSignal } = {},
): Asker {
  return createAsker(
    {
      name: 'pay',
      account: 'acct_1',
      environment: 'test',
      source: { provider: 'pay', allowsAccount: () => true, records },
    },
    { callsPerSecond: 1000, budget: 100, signal: new AbortController().signal, ...options },
  )
}

describe('createAsker', () => {
  it('asks again where the provider was not available, and counts every call', async () => {
    const records = scriptedRecords()
    records.held.push(listed({ id: 'evt_1', type: 'pay' }, 1000))
    records.faults.push(...unavailable(2))
    const asker = ask(records)
    expect((await asker.list(query)).records).toHaveLength(1)
    expect(asker.calls).toBe(3)
  })

  it('gives up in the end, with what the provider said', async () => {
    const records = scriptedRecords()
    records.faults.push(...unavailable(100))
    const asker = ask(records)
    await expect(asker.list(query)).rejects.toThrow('the provider answered 503')
    expect(asker.calls).toBe(5)
  }, 20_000)

  it('does not wait for a provider that asks to be left alone for an hour', async () => {
    const records = scriptedRecords()
    records.faults.push(...unavailable(1, 3_600_000))
    await expect(ask(records).list(query)).rejects.toThrow(RecordsError)
  })

  it('waits for as long as the provider asks where that is bearable', async () => {
    const records = scriptedRecords()
    records.faults.push(...unavailable(1, 1200))
    const startedAt = performance.now()
    await ask(records).list(query)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1195)
  })

  it('does not ask again for what asking does not mend', async () => {
    const records = scriptedRecords()
    records.faults.push(garbage)
    const asker = ask(records)
    await expect(asker.list(query)).rejects.toMatchObject({ trouble: 'garbage' })
    expect(asker.calls).toBe(1)
  })

  it('keeps a part of the budget for what is asked for by reference', async () => {
    const asker = ask(scriptedRecords(), { budget: 10 })
    for (let call = 0; call < 8; call++) await asker.list(query)
    await expect(asker.list(query)).rejects.toThrow(BudgetSpent)
    const reference = { kind: 'event', id: 'evt_1', account: 'acct_1' }
    await asker.fetch(reference)
    await asker.fetch(reference)
    await expect(asker.fetch(reference)).rejects.toThrow(BudgetSpent)
  })

  it('keeps its calls apart', async () => {
    const asker = ask(scriptedRecords(), { callsPerSecond: 50 })
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: 6 }, () => asker.list(query)))
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95)
  })

  it('ends waiting when the pass is stopped', async () => {
    const records = scriptedRecords()
    records.faults.push(...unavailable(1, 30_000))
    const stopping = new AbortController()
    const asked = ask(records, { signal: stopping.signal }).list(query)
    setTimeout(() => stopping.abort(new Error('stopped')), 20)
    await expect(asked).rejects.toThrow()
  })
})
