/** Events and deliveries of a stretch of time, however long nothing came before it, in it or after it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { partsOf } from '../../../src/hookledger.ts'
import { startApi, type TestApi } from '../../support/console-api.ts'
import { createHookledgerDatabase } from '../../support/hookledger-database.ts'
import { shopOptions } from '../../support/shop.ts'
import type { TestDatabase } from '../../support/test-database.ts'

/** Days ago, in the order in which they came. */
const came = [300, 120, 119.99, 60, 2, 1.5, 0.01]

let database: TestDatabase
let hookledger: Hookledger
let api: TestApi
beforeAll(async () => {
  database = await createHookledgerDatabase()
  const pool = database.pool()
  hookledger = createHookledger({ ...shopOptions, database: pool })
  await partsOf(hookledger).register()
  await pool.query(
    `insert into hookledger.sources (provider, provider_account, environment) values ('stripe', 'acct_1', 'test')`,
  )
  for (const table of ['inbox_events', 'deliveries']) {
    const [names, values] =
      table === 'inbox_events' ? ['event_type, body_bytes,', `'charge.refunded', 1,`] : ['', '']
    await pool.query(
      `insert into hookledger.${table} (source_id, event_id, ${names} body_sha256, received_at)
       select (select min(source_id) from hookledger.sources), 'evt_' || days, ${values} sha256('x'), now() - days * interval '1 day'
       from unnest($1::float[]) with ordinality as t(days, n) order by n`,
      [came],
    )
  }
  api = await startApi(hookledger)
})
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

const ago = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()

async function found(list: string, from: number | null, to: number | null): Promise<unknown[]> {
  const ids: unknown[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: { items: { event_id: string }[]; next: string | null } = await api.get(list, {
      limit: '2',
      ...(from !== null && { from: ago(from) }),
      ...(to !== null && { to: ago(to) }),
      ...(cursor !== '' && { cursor }),
    })
    ids.push(...page.items.map((item) => item.event_id))
    cursor = page.next
  }
  return ids
}

describe.each(['/events', '/deliveries'])('%s', (list) => {
  it.each<[from: number | null, to: number | null]>([
    [null, null],
    [null, 0.005],
    [null, 1],
    [null, 30],
    [null, 100],
    [null, 200],
    [null, 400],
    [400, null],
    [200, null],
    [100, null],
    [1, null],
    [0.001, null],
    [125, 115],
    [3, 1],
    [250, 150],
    [310, 290],
    [1000, 900],
    [-10, -20],
  ])('from %j to %j days ago are those that came then, the newest first', async (from, to) => {
    const expected = came
      .filter((days) => (from === null || days <= from) && (to === null || days > to))
      .reverse()
      .map((days) => `evt_${days}`)
    expect(await found(list, from, to)).toEqual(expected)
  })
})
