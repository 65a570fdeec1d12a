import { describe, expect, it } from 'vitest'
import { fullFailure, tellFailure } from '../../src/cli/failure.ts'
import { HookledgerError } from '../../src/core/errors.ts'

describe('tellFailure', () => {
  it('tells an error of ours with its code, wrong use with exit 2 and failures with exit 1', () => {
    expect(tellFailure(new HookledgerError('HKL_CLI_USAGE', 'give one of them'))).toEqual({
      line: 'give one of them (HKL_CLI_USAGE)',
      exitCode: 2,
    })
    expect(tellFailure(new HookledgerError('HKL_NOT_FOUND', 'nothing'))).toMatchObject({
      exitCode: 1,
    })
    expect(tellFailure(new HookledgerError('HKL_CONFIG_INVALID', 'bad'))).toMatchObject({
      exitCode: 2,
    })
  })

  it('takes an error of another copy of Hookledger for what it is', () => {
    expect(tellFailure(Object.assign(new Error('old'), { code: 'HKL_SCHEMA_OLDER' })).line).toBe(
      'old (HKL_SCHEMA_OLDER)',
    )
  })

  it('says where PostgreSQL was not reached, also for a host with several addresses', () => {
    const refused = Object.assign(new Error(''), {
      code: 'ECONNREFUSED',
      address: '::1',
      port: 5432,
    })
    const { line, exitCode } = tellFailure(new AggregateError([refused]))
    expect(line).toBe(
      'cannot reach PostgreSQL at ::1:5432 (ECONNREFUSED): is it running, and is DATABASE_URL right? (HKL_DATABASE_UNREACHABLE)',
    )
    expect(exitCode).toBe(1)
  })

  it('never shows the detail of a database error, which quotes values', () => {
    const error = Object.assign(new Error('violates check constraint'), {
      code: '23514',
      constraint: 'x_check',
      detail: 'Failing row contains (secret)',
    })
    expect(tellFailure(error).line).toBe(
      'the database refused: SQLSTATE 23514 (x_check): violates check constraint',
    )
  })

  it('says what to run when tables are missing', () => {
    expect(
      tellFailure(Object.assign(new Error('relation "x" does not exist'), { code: '42P01' })).line,
    ).toContain('hookledger migrate')
  })

  it('is one line, whatever was thrown', () => {
    expect(tellFailure(new Error('a\n  b\nc')).line).toBe('a b c')
    expect(tellFailure('text').line).toBe('text')
    expect(tellFailure(undefined).line).toContain('LOG_LEVEL=debug')
  })
})

describe('fullFailure', () => {
  it('tells the stack and every cause', () => {
    const text = fullFailure(new Error('outer', { cause: new Error('inner') }))
    expect(text).toContain('outer')
    expect(text).toContain('caused by Error: inner')
    expect(text).toContain('failure.test.ts')
  })
})
