import { describe, expect, it } from 'vitest'
import { judgeServer } from '../../src/postgres/server-checks.ts'

const good = {
  server_version_num: '140000',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  session_replication_role: 'origin',
  deadlock_timeout: '1000',
  default_transaction_read_only: 'off',
  in_recovery: 'off',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_parameter_max_length: '-1',
  log_parameter_max_length_on_error: '0',
}

const judge = (changed: Partial<typeof good>) =>
  judgeServer(new Map(Object.entries({ ...good, ...changed })), 500)

describe('judgeServer', () => {
  it('has nothing against PostgreSQL 14 as it comes', () => {
    expect(judge({})).toEqual([])
    expect(judge({ synchronous_commit: 'remote_apply' })).toEqual([])
    expect(judge({ synchronous_commit: 'remote_write' })).toEqual([])
    expect(judge({ session_replication_role: 'local' })).toEqual([])
  })

  it('refuses an older server, by its name', () => {
    const tooOld = {
      code: 'HKL_DATABASE_TOO_OLD',
      message: 'PostgreSQL 14 or newer is needed, this server is 13',
      breaks: 'all',
    }
    expect(judge({ server_version_num: '130018' })).toEqual([tooOld])
    expect(judge({ server_version_num: '139999' })).toEqual([tooOld])
    expect(judgeServer(new Map())).toEqual([
      expect.objectContaining({ code: 'HKL_DATABASE_TOO_OLD' }),
    ])
  })

  it('refuses a standby', () => {
    expect(judge({ in_recovery: 'on' })).toEqual([
      expect.objectContaining({
        code: 'HKL_DATABASE_UNSAFE',
        breaks: 'all',
        message: expect.stringContaining('standby'),
      }),
    ])
  })

  it('lets only what concerns flushing be accepted', () => {
    expect(
      judge({ fsync: 'off', full_page_writes: 'off', synchronous_commit: 'local' }).map(
        (each) => each.acceptable,
      ),
    ).toEqual([true, true, true])
    expect(
      judge({
        session_replication_role: 'replica',
        in_recovery: 'on',
        server_version_num: '90600',
      }).map((each) => each.acceptable),
    ).toEqual([undefined, undefined, undefined])
  })

  it('minds logged statements only where their parameters are logged too', () => {
    expect(judge({ log_statement: 'all', log_parameter_max_length: '0' })).toEqual([])
    expect(judge({ log_statement: 'ddl' })).toEqual([])
    expect(judge({ log_min_duration_sample: '0' })).toHaveLength(1)
    expect(judge({ log_statement: 'all', log_min_duration_statement: '0' })).toHaveLength(1)
  })

  it('minds a deadlock timeout that is as short as a worker waits', () => {
    expect(judge({ deadlock_timeout: '500' })).toHaveLength(1)
    expect(judge({ deadlock_timeout: '501' })).toEqual([])
  })
})
