import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCommitProxy } from '../../src/drill/proxy/commit-proxy.ts'
import type { CommitFaultMode, CommitProxy } from '../../src/drill/proxy/commit-proxy.ts'
import { createTestDatabase } from '../support/test-database.ts'
import type { TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
let direct: pg.Pool
let proxy: CommitProxy
const clients = new Set<pg.Client>()

beforeAll(async () => {
  database = await createTestDatabase()
  direct = database.pool()
  await direct.query(`
    create table item (id text primary key);
    create table child (id text references item deferrable initially deferred);
    create table slow (id int);
    create function sleep_at_commit() returns trigger language plpgsql as
      'begin perform pg_sleep(60); return null; end';
    create constraint trigger slow_commit after insert on slow
      deferrable initially deferred for each row execute function sleep_at_commit();
    create function add_item(text) returns void language sql as 'insert into item values ($1)'`)
})

afterAll(() => database.drop())

beforeEach(async () => {
  await direct.query('truncate item, child')
  proxy = await createCommitProxy({ target: database.url })
})

afterEach(async () => {
  await proxy.close()
  for (const client of clients) await client.end().catch(() => {})
  clients.clear()
})

async function connected(config: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: proxy.url, ...config })
  client.on('error', () => {})
  await client.connect()
  clients.add(client)
  return client
}

async function items(): Promise<string[]> {
  const { rows } = await direct.query<{ id: string }>('select id from item order by id')
  return rows.map((row) => row.id)
}

const extended = (text: string): pg.QueryConfig & { queryMode: 'extended' } => ({
  text,
  queryMode: 'extended',
})

/** Every way in which a client makes the server commit an insert of `a`. */
const ways: Record<string, (client: pg.Client) => Promise<unknown>> = {
  'a COMMIT as a simple query': async (client) => {
    await client.query('begin')
    await client.query("insert into item values ('a')")
    await client.query('commit')
  },
  'a COMMIT in the extended protocol': async (client) => {
    await client.query(extended('begin'))
    await client.query('insert into item values ($1)', ['a'])
    await client.query(extended('COMMIT'))
  },
  'a COMMIT that was prepared under a name': async (client) => {
    const commit = { name: 'finish', text: 'commit' }
    await client.query('begin')
    await client.query(commit)
    await client.query('begin')
    await client.query("insert into item values ('a')")
    await client.query(commit)
  },
  'a block in one simple query': (client) =>
    client.query("begin; insert into item values ('a'); end"),
  'an autocommitted simple query': (client) => client.query("insert into item values ('a')"),
  'an autocommitted statement with parameters': (client) =>
    client.query('insert into item values ($1)', ['a']),
  'a function that writes': (client) => client.query("select add_item('a')"),
}

const strike = { match: /item/ }

describe.each(Object.keys(ways))('createCommitProxy, at %s', (name) => {
  const commit = (client: pg.Client) => ways[name]?.(client) ?? Promise.reject(new Error(name))

  it('passes the commit when nothing is armed', async () => {
    await commit(await connected())
    expect(await items()).toEqual(['a'])
    expect(proxy.commits.at(-1)).toMatchObject({ action: 'passed', committed: true })
  })

  it('cuts the connection before the server gets the commit', async () => {
    const armed = proxy.arm({ mode: 'drop-before', ...strike })
    await expect(commit(await connected())).rejects.toThrow()
    expect(await armed.struck).toMatchObject({ action: 'drop-before', committed: false })
    expect(await items()).toEqual([])
    // The server has let go: the same row can be inserted without waiting for a lock.
    await ways['an autocommitted simple query']?.(await connected())
    expect(await items()).toEqual(['a'])
  })

  it('cuts the connection after the commit and before its answer', async () => {
    const armed = proxy.arm({ mode: 'drop-after', ...strike })
    await expect(commit(await connected())).rejects.toThrow()
    expect(await armed.struck).toMatchObject({ action: 'drop-after', committed: true })
    expect(await items()).toEqual(['a'])
  })

  it('swallows the answer and keeps the connection open', async () => {
    const armed = proxy.arm({ mode: 'black-hole', ...strike })
    const client = await connected()
    let ended = false
    client.on('end', () => (ended = true))
    const answer = commit(client).then(
      () => 'answered',
      () => 'failed',
    )
    expect(await armed.struck).toMatchObject({ action: 'black-hole', committed: true })
    expect(await items()).toEqual(['a'])
    // Another connection lives; this one hears nothing and is not told that it is dead.
    await (await connected()).query('select 1')
    expect(ended).toBe(false)
    expect(await Promise.race([answer, Promise.resolve('silent')])).toBe('silent')
    proxy.cutAll()
    expect(await answer).toBe('failed')
  })
})

describe('createCommitProxy, choosing the commit', () => {
  it('strikes the nth commit that matches, and no other', async () => {
    const armed = proxy.arm({ mode: 'drop-before', nth: 2, match: /'(b|c)'/ })
    const client = await connected()
    await client.query("insert into item values ('a')")
    await client.query("insert into item values ('b')")
    await client.query('select 1')
    await expect(client.query("insert into item values ('c')")).rejects.toThrow()
    expect((await armed.struck).statements).toEqual(["insert into item values ('c')"])
    expect(await items()).toEqual(['a', 'b'])
  })

  it('counts over all connections', async () => {
    const armed = proxy.arm({ mode: 'drop-after', nth: 2 })
    await (await connected()).query("insert into item values ('a')")
    await expect((await connected()).query("insert into item values ('b')")).rejects.toThrow()
    expect((await armed.struck).connection).toBe(2)
  })

  it('does not count what only reads, unless it is asked for by name', async () => {
    const armed = proxy.arm({ mode: 'drop-before' })
    const client = await connected()
    await client.query('select 1')
    await client.query('show fsync')
    armed.disarm()
    proxy.arm({ mode: 'drop-before', match: /add_item/ })
    await expect(client.query("select add_item('a')")).rejects.toThrow()
    expect(await items()).toEqual([])
  })

  it('does not take the COMMIT of a failed block for a commit', async () => {
    const armed = proxy.arm({ mode: 'drop-after' })
    const client = await connected()
    await client.query('begin')
    await expect(client.query('insert into nowhere values (1)')).rejects.toThrow()
    expect((await client.query('commit')).command).toBe('ROLLBACK')
    await expect(client.query("insert into item values ('a')")).rejects.toThrow()
    expect((await armed.struck).statements).toEqual(["insert into item values ('a')"])
  })

  it.each<CommitFaultMode>(['drop-after', 'black-hole'])(
    'passes on a commit that the server refuses, and strikes the next (%s)',
    async (mode) => {
      const armed = proxy.arm({ mode })
      const client = await connected()
      await client.query('begin')
      await client.query("insert into child values ('missing')")
      await expect(client.query('commit')).rejects.toMatchObject({ code: '23503' })
      expect(proxy.commits.at(-1)).toMatchObject({
        action: 'passed',
        committed: false,
        answer: 'ERROR 23503',
      })
      void client.query("insert into item values ('a')").catch(() => {})
      expect((await armed.struck).answer).toBe('INSERT 0 1')
    },
  )

  it('sees each commit of a client that pipelines, in its own transaction', async () => {
    const armed = proxy.arm({ mode: 'drop-before', match: /'c'/ })
    const client = await connected({ pipeline: true } as pg.ClientConfig)
    const texts = [
      'begin',
      "insert into item values ('a')",
      'commit',
      "insert into item values ('b')",
      'begin',
      "insert into item values ('c')",
      'commit',
    ]
    const results = await Promise.allSettled(texts.map((text) => client.query(text)))
    expect(results.map((result) => result.status)).toEqual([
      ...Array<string>(6).fill('fulfilled'),
      'rejected',
    ])
    expect(proxy.commits.map((entry) => [entry.kind, entry.committed])).toEqual([
      ['explicit', true],
      ['implicit', true],
      ['explicit', false],
    ])
    await armed.struck
    expect(await items()).toEqual(['a', 'b'])
  })

  it('tells of an unknown outcome when the server ends before it answers', async () => {
    const armed = proxy.arm({ mode: 'drop-after' })
    const client = await connected({ application_name: 'committing' })
    const refused = expect(client.query('insert into slow values (1)')).rejects.toThrow()
    const inCommit = `select pid from pg_stat_activity
      where application_name = 'committing' and wait_event = 'PgSleep'`
    await expect.poll(async () => (await direct.query(inCommit)).rowCount).toBe(1)
    await direct.query(`select pg_terminate_backend(pid) from (${inCommit}) as found`)
    await refused
    expect(await armed.struck).toMatchObject({ action: 'drop-after', committed: null })
    expect((await direct.query('select from slow')).rowCount).toBe(0)
  })
})

describe('createCommitProxy, on the way', () => {
  it('delays what clients send by the latency', async () => {
    const client = await connected()
    proxy.setLatency(60)
    const started = performance.now()
    await client.query('select 1')
    expect(performance.now() - started).toBeGreaterThan(55)
  })

  it('cuts all connections', async () => {
    const client = await connected()
    const asleep = client.query('select pg_sleep(30)')
    const failed = expect(asleep).rejects.toThrow()
    proxy.cutAll()
    await failed
  })
})
