import { describe, expect, it } from 'vitest'
import type { Executor, Statement } from '../../src/postgres/executor.ts'
import { runParts } from '../../src/postgres/write-parts.ts'

function recording(row: Record<string, number>): {
  readonly tx: Executor
  readonly sent: Statement[]
} {
  const sent: Statement[] = []
  const tx = {
    query: (statement: Statement) => {
      sent.push(statement)
      return Promise.resolve([row])
    },
  } as unknown as Executor
  return { tx, sent }
}

describe('runParts', () => {
  it('makes one statement of all parts, each with its own values', async () => {
    const { tx, sent } = recording({ first: 2, second: 0 })
    const counts = await runParts(tx, [
      {
        name: 'first',
        sql: 'first as (insert into a select :1, :2, :1 returning 1)',
        values: ['x', 'y'],
      },
      {
        name: 'second',
        sql: `helper as (select :1::text::jsonb), second as (delete from b where c = :2::bigint returning 1)`,
        values: ['{}', 7],
      },
    ])
    expect(sent).toEqual([
      {
        text: `with first as (insert into a select $1, $2, $1 returning 1),
helper as (select $3::text::jsonb), second as (delete from b where c = $4::bigint returning 1)
select (select count(*)::integer from first) as first, (select count(*)::integer from second) as second`,
        repeated: false,
        values: ['x', 'y', '{}', 7],
      },
    ])
    expect(counts).toEqual(
      new Map([
        ['first', 2],
        ['second', 0],
      ]),
    )
  })

  it('numbers more than nine values', async () => {
    const { tx, sent } = recording({ p: 1 })
    const values = Array.from({ length: 11 }, (_, index) => index)
    await runParts(tx, [
      { name: 'p', sql: `p as (select :1, :10, :11)`, values },
      { name: 'q', sql: `q as (select :1)`, values: ['last'] },
    ])
    expect(sent[0]?.text).toContain('select $1, $10, $11')
    expect(sent[0]?.text).toContain('q as (select $12)')
  })

  it('sends nothing when there is nothing to write', async () => {
    const { tx, sent } = recording({})
    expect(await runParts(tx, [])).toEqual(new Map())
    expect(sent).toEqual([])
  })
})
