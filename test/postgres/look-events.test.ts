import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isToldAlready, lookEvent, type Knowledge } from '../../src/postgres/look-events.ts'
import { toJson } from '../../src/core/json.ts'
import type { MadeEvent } from '../../src/workflow/records.ts'

const made: MadeEvent = {
  eventId: 'object:plan.changed:p1',
  eventType: 'plan.changed',
  occurredAt: null,
  apiVersion: null,
  body: { id: 'p1', amount: 9007199254740993n },
}
const object = { kind: 'plan', value: 'p1' }
const knowledge = (over: Partial<Knowledge> = {}): Knowledge => ({
  answered: 0n,
  applied: 0n,
  isWaiting: false,
  askedBy: null,
  ...over,
})
const idOf = (orderId: string, answered: bigint, value = 'p1'): string =>
  lookEvent(made, { orderId, object: { ...object, value } }, { answered }).eventId

describe('lookEvent', () => {
  it('is the same for whoever knows the same, and another one once more is known', () => {
    expect(idOf('p1', 0n)).toBe('object:plan:p1:look-1')
    expect(idOf('p1', 7n)).toBe('object:plan:p1:look-8')
  })

  it('tells orders apart that look at one object', () => {
    expect(idOf('o1', 0n)).toBe('object:plan:p1:look-1:o1')
    expect(idOf('o2', 0n)).not.toBe(idOf('o1', 0n))
  })

  it('leaves all but the id as it was made', () => {
    const event = lookEvent(made, { orderId: 'o1', object }, { answered: 3n })
    expect(event).toEqual({ ...made, eventId: 'object:plan:p1:look-4:o1' })
  })

  it('has an id that can be stored, however long names are', () => {
    const long = 'ä'.repeat(120)
    const ids = [idOf(long, 0n, long), idOf(`${long}x`, 0n, long), idOf(long, 1n, long)]
    for (const id of ids) expect(Buffer.byteLength(id)).toBeLessThanOrEqual(255)
    expect(new Set(ids).size).toBe(3)
  })
})

describe('isToldAlready', () => {
  const askedBy = createHash('sha256').update(toJson(made.body)).digest('hex')

  it('knows the very bytes that led to the newest answer', () => {
    expect(isToldAlready(made, knowledge({ askedBy }))).toBe(true)
    expect(isToldAlready({ ...made, eventId: 'another' }, knowledge({ askedBy }))).toBe(true)
  })

  it('does not take another body, or none, for the same', () => {
    expect(isToldAlready({ ...made, body: { id: 'p2' } }, knowledge({ askedBy }))).toBe(false)
    expect(isToldAlready(made, knowledge())).toBe(false)
  })
})
