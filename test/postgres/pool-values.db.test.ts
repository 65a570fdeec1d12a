/** What comes back does not depend on what an app has told its driver. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const values = `select 9007199254740993::bigint as big, 1.10::numeric as exact, 7::integer as small, -3::smallint as tiny, 1.5::double precision as double,
  true as yes, false as no, null::boolean as nothing, '\\x00ff5c27'::bytea as bytes, ''::bytea as no_bytes,
  '{"a": [1, null], "b": "\\u00e4"}'::jsonb as json, 'null'::json as json_null, '2026-11-30'::date as day,
  '2026-11-30 15:04:05.123456+00'::timestamptz as at, '0099-01-02 03:04:05+00'::timestamptz as old, '2026-07-01 12:00:00.5+00'::timestamptz as summer,
  array['a', 'b c', null, '', 'NULL', 'x"y\\z', '{,}', E'two\\nlines', 'ä'] as texts, array[]::text[] as none, array[1, null, 3]::integer[] as numbers,
  array[9007199254740993]::bigint[] as bigs, array[true, false] as flags, 'plain'::text as text, '5f0c7e1e-0000-4000-8000-000000000000'::uuid as id`

const expected = {
  big: '9007199254740993',
  exact: '1.10',
  small: 7,
  tiny: -3,
  double: 1.5,
  yes: true,
  no: false,
  nothing: null,
  bytes: Buffer.from([0, 255, 0x5c, 0x27]),
  no_bytes: Buffer.alloc(0),
  json: { a: [1, null], b: 'ä' },
  json_null: null,
  day: '2026-11-30',
  at: new Date('2026-11-30T15:04:05.123Z'),
  old: new Date('0099-01-02T03:04:05Z'),
  summer: new Date('2026-07-01T12:00:00.500Z'),
  texts: ['a', 'b c', null, '', 'NULL', 'x"y\\z', '{,}', 'two\nlines', 'ä'],
  none: [],
  numbers: [1, null, 3],
  bigs: ['9007199254740993'],
  flags: [true, false],
  text: 'plain',
  id: '5f0c7e1e-0000-4000-8000-000000000000',
}

describe('values that come back', () => {
  it.each(['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/St_Johns', 'Africa/Monrovia'])(
    'are the same in a session of %s',
    async (zone) => {
      const db = createDatabase(database.pool({ options: `-c timezone=${zone}` }), 'hookledger')
      expect(await db.query({ text: values })).toEqual([expected])
      expect(await db.transaction((tx) => tx.query({ text: values }))).toEqual([expected])
    },
  )

  it('are the same with the other form of bytea', async () => {
    const db = createDatabase(database.pool({ options: '-c bytea_output=escape' }), 'hookledger')
    expect(await db.query({ text: values })).toEqual([expected])
  })

  it('are the same when an app has its own parsers, which its own SQL still gets', async () => {
    const oids = [16, 17, 20, 23, 114, 1009, 1082, 1184, 1700, 3802]
    const before = oids.map((oid) => [oid, pg.types.getTypeParser(oid, 'text')] as const)
    for (const oid of oids) pg.types.setTypeParser(oid, (text) => `theirs: ${text}`)
    try {
      const db = createDatabase(database.pool(), 'hookledger')
      expect(await db.query({ text: values })).toEqual([expected])
      const own = await db.transaction((tx) =>
        tx.query({ text: 'select 1::bigint as big, now() as at', extended: true }),
      )
      expect(own).toEqual([{ big: 'theirs: 1', at: expect.stringMatching(/^theirs: /) }])
    } finally {
      for (const [oid, parser] of before) pg.types.setTypeParser(oid, parser)
    }
  })
})

describe('values of an app’s own SQL', () => {
  it('are bound as its driver binds them', async () => {
    const db = createDatabase(database.pool(), 'hookledger')
    const at = new Date('2026-11-30T15:04:05.000Z')
    const rows = await db.transaction((tx) =>
      tx.query({
        text: `select $1::timestamptz[] = array['2026-11-30 15:04:05+00'::timestamptz] as times, $2::integer[] as nested, $3::jsonb ->> 'a' as json`,
        values: [
          [at],
          [
            [1, 2],
            [3, 4],
          ],
          { a: 'x' },
        ] as never,
        extended: true,
      }),
    )
    expect(rows).toEqual([
      {
        times: true,
        nested: [
          [1, 2],
          [3, 4],
        ],
        json: 'x',
      },
    ])
  })
})
