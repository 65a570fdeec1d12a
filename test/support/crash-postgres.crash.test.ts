import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isRunning } from '../../src/postgres/embedded/process-table.ts'
import { startPostgresForCrashTest } from './crash-postgres.ts'
import type { CrashPostgres } from './crash-postgres.ts'
import { queryOnce } from './once-query.ts'

let server: CrashPostgres

beforeEach(async () => {
  server = await startPostgresForCrashTest()
  await queryOnce(server.url, 'create table kept as select 42 as answer')
})

afterEach(() => server.remove())

const kept = () => queryOnce(server.url, 'select answer from kept')

describe('startPostgresForCrashTest', () => {
  it('keeps what was committed, and the URL, when everything is killed and started again', async () => {
    const { url } = server
    const pid = server.pid()
    await server.kill()
    expect(isRunning(pid)).toBe(false)
    await expect(kept()).rejects.toThrow()
    await server.restart()
    expect(server.url).toBe(url)
    expect(await kept()).toEqual([{ answer: 42 }])
  })

  it('comes back by itself when one backend is killed, and every session is lost', async () => {
    const other = queryOnce(server.url, 'select pg_sleep(60)')
    const lost = expect(other).rejects.toThrow()
    const find = `select pid from pg_stat_activity where query = 'select pg_sleep(60)'`
    await expect.poll(async () => (await queryOnce(server.url, find)).length).toBe(1)
    const [backend] = await queryOnce<{ pid: number }>(server.url, find)
    const pid = server.pid()
    await server.killBackend(backend?.pid ?? 0)
    await lost
    expect(server.pid()).toBe(pid)
    expect(await kept()).toEqual([{ answer: 42 }])
  })

  it.each(['fast', 'immediate'] as const)('starts again after a stop (%s)', async (mode) => {
    await server.stop(mode)
    await server.restart()
    expect(await kept()).toEqual([{ answer: 42 }])
  })
})
