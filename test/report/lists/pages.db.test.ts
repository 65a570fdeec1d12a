/** Lists page by page at the API: nothing is left out or shown twice, whatever the size of a page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createConsoleHistory, type ConsoleHistory } from '../../support/console-history.ts'
import { startApi, type TestApi } from '../../support/console-api.ts'

type Item = Readonly<Record<string, unknown>>
interface Page {
  readonly items: readonly Item[]
  readonly next: string | null
}
type Query = Readonly<Record<string, string>>

let history: ConsoleHistory
let api: TestApi
beforeAll(async () => {
  history = await createConsoleHistory()
  api = await startApi(history.hookledger)
  const sql = (text: string): Promise<unknown> => history.pool.query(text)
  // orders that were opened in the same moment
  await sql(
    `insert into hookledger.orders (order_id, workflow, state, subject, opened_at)
     select 'twin-' || n, 'license', 'pending', 'user:' || n, '2026-01-01T00:00:00Z' from generate_series(1, 7) n`,
  )
  // findings of one moment
  await sql(
    `insert into hookledger.findings (finding_id, class, kind, severity, owner, evidence, due_at, first_seen_at)
     select gen_random_uuid(), 'lag', 'order_stuck', 'low', 'support', '{}', '2027-01-01', '2026-01-01' from generate_series(1, 5)`,
  )
  // acts of one commit, over the border of a digit; and of two commits, of which the later number began earlier
  await sql(
    `insert into hookledger.operator_acts (act, target, reason, actor)
     select 'assign', 'finding:' || n, 'many at once', 'ada' from generate_series(1, 120) n`,
  )
  await sql(
    `insert into hookledger.operator_acts (act, target, reason, actor, acted_at)
     select 'late', 'order:' || n, 'began earlier', 'bob', now() - n * interval '1 hour' from generate_series(1, 6) n`,
  )
  await sql(
    `insert into hookledger.rejections (source, reason, minute, first_at, last_at)
     select 'stripe', 'mismatch', m, m, m from generate_series('2026-01-01'::timestamptz, '2026-01-01 00:06', '1 minute') m`,
  )
  await sql(
    `select hookledger.read_payload(event_key, 'ticket ' || event_id, 'cleo') from hookledger.inbox_events order by event_key limit 4`,
  )
})
afterAll(() => history.close())

async function throughPages(list: string, limit: number, query: Query = {}): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < 400; pages += 1) {
    const page: Page = await api.get<Page>(list, {
      ...query,
      limit: String(limit),
      ...(cursor !== null && { cursor }),
    })
    expect(page.items.length).toBeLessThanOrEqual(limit)
    items.push(...page.items)
    cursor = page.next
    if (cursor === null) return items
  }
  throw new Error(`${list} has no end`)
}

const whole = async (list: string, query: Query = {}): Promise<Item[]> =>
  throughPages(list, 200, query)

const lists: readonly (readonly [list: string, query: Query, atLeast: number])[] = [
  ['/events', {}, 9],
  ['/events', { state: 'pending' }, 3],
  ['/deliveries', {}, 11],
  ['/deliveries', { verdict: 'duplicate' }, 2],
  ['/rejections', {}, 8],
  ['/orders', {}, 8],
  ['/orders', { state: 'pending' }, 7],
  ['/decisions', {}, 6],
  ['/effects', {}, 2],
  ['/payments', {}, 1],
  ['/entitlements', {}, 1],
  ['/operations', {}, 6],
  ['/operations', { state: 'unfinished' }, 3],
  ['/findings', {}, 9],
  ['/findings', { state: 'unfinished' }, 6],
  ['/runs', {}, 1],
  ['/acts', {}, 130],
  ['/acts', { actor: 'ada' }, 120],
  ['/bulk', {}, 1],
]

describe.each(lists)('%s of %j', (list, query, atLeast) => {
  it.each([1, 2, 3])('is the same in pages of %d as in one', async (limit) => {
    const all = await whole(list, query)
    expect(all.length).toBeGreaterThanOrEqual(atLeast)
    const texts = all.map((item) => JSON.stringify(item))
    expect(new Set(texts).size).toBe(texts.length)
    const pieces = await throughPages(list, limit, query)
    expect(pieces.map((item) => JSON.stringify(item))).toEqual(texts)
  })

  it('begins nowhere for a cursor that is none', async () => {
    const forged = (parts: unknown): string =>
      Buffer.from(JSON.stringify(parts)).toString('base64url')
    for (const cursor of [
      'x',
      forged([]),
      forged(['1', '2', '3', '4', '5']),
      forged([1]),
      forged({ 0: '1' }),
      forged([`1' or 1=1`]),
      forged(['9'.repeat(19)]),
      forged([null]),
    ]) {
      const answer = await api.ask('GET', list, { query: { ...query, cursor } })
      expect([cursor, answer.status, answer.code]).toEqual([cursor, 400, 'HKL_API_INPUT_INVALID'])
    }
  })
})

describe('a page', () => {
  it('goes on where it ended although something new came first', async () => {
    const first = await api.get<Page>('/events', { limit: '3' })
    const { fixture } = history
    await fixture.put(await fixture.event({ id: 'evt_new', type: 'charge.refunded' }), 'ready')
    const second = await api.get<Page>('/events', { limit: '3', cursor: first.next ?? '' })
    const ids = [...first.items, ...second.items].map((item) => item['event_id'])
    expect(new Set(ids).size).toBe(6)
    expect(ids).not.toContain('evt_new')
  })
})

const some = async (list: string, query: Query): Promise<Item[]> => {
  const items = await whole(list, query)
  expect(items.length).toBeGreaterThan(0)
  return items
}

describe('filters of events', () => {
  it.each(['pending', 'deferred', 'dead', 'processed', 'ignored'])('state %s', async (state) => {
    for (const item of await some('/events', { state })) expect(item['state']).toBe(state)
  })

  it('source, by provider and in full', async () => {
    const [first] = await whole('/events')
    const source = String(first?.['source'])
    const all = (await whole('/events')).length
    expect(await some('/events', { source })).toHaveLength(all)
    expect(await some('/events', { source: source.split(':')[0] ?? '' })).toHaveLength(all)
    expect(await whole('/events', { source: 'paypal' })).toEqual([])
  })

  it('type, order, beginning of the id, and time', async () => {
    for (const item of await some('/events', { type: 'refund.created' }))
      expect(item['event_type']).toBe('refund.created')
    const ofOrder = await some('/events', { order_id: '1001' })
    expect(ofOrder.map((item) => item['event_id'])).toEqual(
      expect.arrayContaining(['evt_paid', 'evt_intent', 'evt_refund']),
    )
    for (const item of await some('/events', { text: 'evt_de' }))
      expect(item['event_id']).toMatch(/^evt_de/)
    expect(await whole('/events', { text: 'evt%' })).toEqual([])
    expect(await whole('/events', { to: '2020-01-01T00:00:00Z' })).toEqual([])
    await some('/events', { from: '2020-01-01T00:00:00+02:00' })
  })

  it('counts each state as the list has it', async () => {
    const { counts } = await api.get<{ counts: { state: string; events: number }[] }>(
      '/events/counts',
    )
    for (const { state, events } of counts)
      expect([state, (await whole('/events', { state })).length]).toEqual([state, events])
  })
})

describe('other filters', () => {
  it.each<[string, Query, string, unknown]>([
    ['/orders', { workflow: 'license' }, 'workflow', 'license'],
    ['/orders', { subject: 'user:3' }, 'order_id', 'twin-3'],
    ['/decisions', { kind: 'absorbed' }, 'kind', 'absorbed'],
    ['/decisions', { order_id: '1001' }, 'order_id', '1001'],
    ['/effects', { type: 'refund' }, 'effect_reference', 're_1'],
    ['/payments', { applied: 'true' }, 'applied', true],
    ['/entitlements', { subject: 'email:ada' }, 'subject', 'email:ada@example.com'],
    ['/operations', { state: 'dead' }, 'state', 'dead'],
    ['/findings', { class: 'lag' }, 'class', 'lag'],
    ['/findings', { owner: 'support' }, 'owner', 'support'],
    ['/findings', { overdue: 'true' }, 'overdue', true],
    ['/acts', { act: 'late' }, 'actor', 'bob'],
    ['/acts', { act: 'read_payload' }, 'actor', 'cleo'],
    ['/rejections', { reason: 'mismatch' }, 'reason', 'mismatch'],
    ['/deliveries', { verdict: 'duplicate' }, 'event_id', 'evt_paid'],
  ])('%s %j', async (list, query, field, value) => {
    for (const item of await some(list, query)) expect(item[field]).toBe(value)
  })

  it('tell a beginning from a pattern', async () => {
    expect((await some('/orders', { text: 'twin-' })).length).toBe(7)
    for (const text of ['twin_', '%', 'TWIN']) expect(await whole('/orders', { text })).toEqual([])
  })

  it('show repairs and readings among the acts', async () => {
    const kinds = new Set((await whole('/acts')).map((item) => item['act']))
    for (const kind of ['repair', 'read_payload', 'replay', 'findings dismiss'])
      expect(kinds).toContain(kind)
  })
})

describe('search', () => {
  it.each([
    ['1001', 'order', '1001'],
    ['evt_paid', 'event', /evt_paid$/],
    ['pi_1', 'order', '1001'],
    ['email:ada@example.com', 'subject', 'email:ada@example.com'],
    ['user:3', 'subject', 'user:3'],
  ])('of %s leads to the %s', async (q, kind, id) => {
    const { items } = await api.get<{ items: { kind: string; id: string }[] }>('/search', { q })
    expect(items).toContainEqual(
      expect.objectContaining({ kind, id: id instanceof RegExp ? expect.stringMatching(id) : id }),
    )
  })

  it('leads to an operation and a finding by id', async () => {
    for (const [kind, id] of [
      ['operation', history.outbox.dead],
      ['finding', history.finding],
    ] as const) {
      const { items } = await api.get<{ items: object[] }>('/search', { q: id })
      expect(items[0]).toMatchObject({ kind, id })
    }
  })

  it.each(['nobody', `' or 1=1 --`, '%', '💥', '\\', '<script>'])(
    'of %s finds nothing',
    async (q) => {
      expect(await api.get('/search', { q })).toEqual({ items: [] })
    },
  )

  it('wants something to look for', async () => {
    for (const q of ['', ' ', '\u0000', 'x'.repeat(513)])
      expect((await api.ask('GET', '/search', { query: { q } })).status).toBe(400)
  })
})
