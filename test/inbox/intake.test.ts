import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createSignals } from '../../src/core/signals.ts'
import type { IncomingDelivery, NamedStatement } from '../../src/inbox/intake-statement.ts'
import type { IntakeOptions, IntakeResult } from '../../src/inbox/intake.ts'
import { Intake } from '../../src/inbox/intake.ts'
import type { Database } from '../../src/postgres/executor.ts'

/** A database that answers each intake statement by a function; every id is new. */
function fakeDatabase(
  onBatch: (ids: readonly string[], statement: NamedStatement) => Promise<void> | void,
): {
  database: Database
  batches: string[][]
} {
  const batches: string[][] = []
  let keys = 0
  const query = async (statement: NamedStatement): Promise<unknown[]> => {
    if (!statement.text.startsWith('with settings')) return []
    const ids = statement.values?.[6] as readonly string[]
    batches.push([...ids])
    await onBatch(ids, statement)
    return [
      {
        source_ids: `{${ids.map(() => 1).join(',')}}`,
        event_keys: `{${ids.map(() => ++keys).join(',')}}`,
      },
    ]
  }
  return { database: { schema: '"h".', schemaName: 'h', query } as unknown as Database, batches }
}

function createIntake(database: Database, options: Partial<IntakeOptions> = {}): Intake {
  return new Intake({
    database,
    limits: { intakeBatch: 200, intakeQueue: 5000, lockTimeoutMs: 500 },
    signals: createSignals(),
    answerWithinMs: 5000,
    ...options,
  })
}

function delivery(eventId: string, bytes = 10): IncomingDelivery {
  const rawBody = Buffer.alloc(bytes, 0x61)
  return {
    rawBody,
    bodySha256: createHash('sha256').update(rawBody).digest(),
    events: [
      {
        namespace: { provider: 'p', account: 'a', environment: 'test' },
        eventId,
        eventType: 't',
        occurredAt: null,
        apiVersion: null,
      },
    ],
  }
}

function reasonOf(result: IntakeResult): string {
  return result.stored ? 'stored' : result.reason
}

function sqlError(code: string): Error {
  return Object.assign(new Error('no'), { code })
}

/** A promise and the function that resolves it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('batches', () => {
  it('start at once and gather only while another one is in flight', async () => {
    const first = gate()
    const { database, batches } = fakeDatabase((ids) =>
      ids.includes('0') ? first.opened : undefined,
    )
    const intake = createIntake(database, { lanes: 1 })
    const results = [intake.submit(delivery('0'))]
    while (batches.length === 0) await new Promise(setImmediate)
    for (let n = 1; n <= 250; n++) results.push(intake.submit(delivery(String(n))))
    await new Promise(setImmediate)
    expect(batches.map(({ length }) => length)).toEqual([1])
    first.open()
    expect((await Promise.all(results)).every(({ stored }) => stored)).toBe(true)
    expect(batches.map(({ length }) => length)).toEqual([1, 200, 50])
  })

  it('end at their bytes, and a delivery that is larger goes alone', async () => {
    const { database, batches } = fakeDatabase(() => {})
    const intake = createIntake(database, { batchBytes: 1000 })
    const sizes = [400, 400, 400, 3000, 100, 100]
    await Promise.all(sizes.map((size, n) => intake.submit(delivery(String(n), size))))
    expect(batches).toEqual([['0', '1'], ['2'], ['3'], ['4', '5']])
  })

  it('go beside one that is slow, so that a silent connection holds up only its own', async () => {
    const { database, batches } = fakeDatabase((ids) =>
      ids.includes('silent') ? new Promise(() => {}) : undefined,
    )
    const intake = createIntake(database, { answerWithinMs: 300 })
    const silent = intake.submit(delivery('silent'))
    while (batches.length === 0) await new Promise(setImmediate)
    expect(reasonOf(await intake.submit(delivery('soon')))).toBe('stored')
    expect(reasonOf(await intake.submit(delivery('later')))).toBe('stored')
    expect(reasonOf(await silent)).toBe('unavailable')
  })
})

describe('failures', () => {
  it('find the one delivery that cannot be written by halves, and store all others once', async () => {
    const stored: string[] = []
    const { database, batches } = fakeDatabase((ids) => {
      if (ids.includes('13')) throw sqlError('22021')
      stored.push(...ids)
    })
    const intake = createIntake(database)
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) => intake.submit(delivery(String(n)))),
    )
    expect(results.map(reasonOf).filter((reason) => reason !== 'stored')).toEqual(['unstorable'])
    expect(reasonOf(results[13] as IntakeResult)).toBe('unstorable')
    expect(new Set(stored).size).toBe(99)
    expect(stored).toHaveLength(99)
    expect(batches.length).toBeLessThan(20)
  })

  it('prepare the statement once a connection, and no more behind a pooler that mixes connections', async () => {
    const names: (string | undefined)[] = []
    const { database } = fakeDatabase((_ids, { name }) => {
      names.push(name)
      if (names.length === 2) throw sqlError('26000')
    })
    const intake = createIntake(database)
    for (const id of ['a', 'b', 'c'])
      expect(reasonOf(await intake.submit(delivery(id)))).toBe('stored')
    expect(names[0]).toMatch(/^hookledger_intake_[0-9a-f]{16}$/)
    expect(names).toEqual([names[0], names[0], undefined, undefined])
  })

  it('that a person must end are not tried again', async () => {
    const { database, batches } = fakeDatabase(() => {
      throw sqlError('42501')
    })
    const intake = createIntake(database)
    expect(reasonOf(await intake.submit(delivery('a')))).toBe('unavailable')
    expect(batches).toHaveLength(1)
  })

  it('that pass are tried again with the same batch until they have passed', async () => {
    const { database, batches } = fakeDatabase(() => {
      if (batches.length < 5) throw sqlError('57P03')
    })
    const intake = createIntake(database)
    const results = await Promise.all(['a', 'b'].map((id) => intake.submit(delivery(id))))
    expect(results.map(reasonOf)).toEqual(['stored', 'stored'])
    expect(batches).toEqual(Array.from({ length: 5 }, () => ['a', 'b']))
  })

  it('that do not pass are answered within the deadline, and nothing is tried for nobody', async () => {
    const { database, batches } = fakeDatabase(() => {
      throw new Error('Connection terminated unexpectedly')
    })
    const intake = createIntake(database, { answerWithinMs: 200 })
    expect(reasonOf(await intake.submit(delivery('a')))).toBe('unavailable')
    const tries = batches.length
    await new Promise((resolve) => setTimeout(resolve, 700))
    expect(batches.length).toBeLessThanOrEqual(tries + 1)
  })
})

describe('bounds', () => {
  it('refuse what is more than the queue may hold, in number and in bytes', async () => {
    const first = gate()
    const { database } = fakeDatabase(() => first.opened)
    const limits = { intakeBatch: 200, intakeQueue: 3, lockTimeoutMs: 500 }
    const byNumber = createIntake(database, { limits })
    const byBytes = createIntake(database, { queueBytes: 1000 })
    const taken = ['a', 'b', 'c'].map((id) => byNumber.submit(delivery(id)))
    expect(reasonOf(await byNumber.submit(delivery('d')))).toBe('overloaded')
    const large = byBytes.submit(delivery('e', 900))
    expect(reasonOf(await byBytes.submit(delivery('f', 200)))).toBe('overloaded')
    first.open()
    expect((await Promise.all([...taken, large])).map(reasonOf)).toEqual([
      'stored',
      'stored',
      'stored',
      'stored',
    ])
    expect(reasonOf(await byBytes.submit(delivery('g', 5000)))).toBe('stored')
  })

  it('refuse everything after stop, which waits for what was taken', async () => {
    const first = gate()
    const { database } = fakeDatabase(() => first.opened)
    const intake = createIntake(database)
    const taken = intake.submit(delivery('a'))
    let stopped = false
    const stopping = intake.stop().then(() => {
      stopped = true
    })
    expect(reasonOf(await intake.submit(delivery('b')))).toBe('stopped')
    expect(stopped).toBe(false)
    first.open()
    expect(reasonOf(await taken)).toBe('stored')
    await stopping
    await intake.stop()
  })
})
