import { describe, expect, it } from 'vitest'
import {
  classify,
  describeDatabaseError,
  sqlstateOf,
  sqlstateTable,
  withoutValues,
} from '../../src/postgres/sqlstate.ts'

const failure = (code: string, message = 'x', more: object = {}): Error =>
  Object.assign(new Error(message), { code, ...more })

describe('classify', () => {
  it('means for every SQLSTATE what was agreed, and nothing else', () => {
    expect(sqlstateTable).toEqual({
      '40001': 'retry',
      '40P01': 'retry',
      '55P03': 'retry',
      '57014': 'retry',
      '53300': 'retry',
      '57P03': 'retry',
      '57P01': 'unknown',
      '57P02': 'unknown',
      '57P05': 'unknown',
      '25P03': 'unknown',
      '25P04': 'unknown',
      '42P10': 'fatal',
      '42P01': 'fatal',
      '42501': 'fatal',
      '42703': 'fatal',
      '42883': 'fatal',
      '3D000': 'fatal',
      '3F000': 'fatal',
      '57P04': 'fatal',
      '25006': 'unavailable',
      '53100': 'unavailable',
      '53200': 'unavailable',
      '58030': 'unavailable',
      '0A000': 'reconnect',
      '26000': 'reconnect',
      '42P05': 'reconnect',
      '22P05': 'poison',
      '22P02': 'poison',
      '22003': 'poison',
      '22021': 'poison',
      '54001': 'poison',
      '54000': 'poison',
      '23514': 'poison',
      '23502': 'poison',
      '23503': 'poison',
      '08': 'unknown',
      '21': 'poison',
      '22': 'poison',
      '23': 'poison',
      '28': 'fatal',
      '42': 'fatal',
      '53': 'unavailable',
      '54': 'poison',
      '58': 'unavailable',
      XX: 'unavailable',
    })
    for (const [state, meaning] of Object.entries(sqlstateTable)) {
      expect(classify(failure(state.length === 5 ? state : `${state}9Z9`))).toBe(meaning)
    }
  })

  it('tries again what the table does not know', () => {
    for (const state of ['P0001', '55006', '57P99', '25P02', '40003', 'HV000'])
      expect(classify(failure(state))).toBe('retry')
  })

  it('takes an error without a SQLSTATE for one of which nothing is known', () => {
    const errors = [
      failure('ECONNRESET'),
      failure('EPIPE'),
      new Error('Connection terminated unexpectedly'),
      new Error('Query read timeout'),
      failure('HKL_X'),
      'text',
      null,
      undefined,
      42,
    ]
    for (const error of errors) {
      expect(sqlstateOf(error)).toBeUndefined()
      expect(classify(error)).toBe('unknown')
    }
  })
})

describe('describeDatabaseError', () => {
  const secrets = {
    detail: 'Failing row contains (secret)',
    where: 'secret',
    hint: 'secret',
    internalQuery: 'secret',
  }

  it('says code, constraint and message, and never a detail', () => {
    expect(
      describeDatabaseError(
        failure('23514', 'violates check constraint "c"', { ...secrets, constraint: 'c' }),
      ),
    ).toBe('SQLSTATE 23514 (c): violates check constraint "c"')
    expect(describeDatabaseError(failure('P0001', 'out of stock', secrets))).toBe(
      'SQLSTATE P0001: out of stock',
    )
  })

  it('keeps back messages that quote the value', () => {
    expect(
      describeDatabaseError(
        failure('22P02', 'invalid input syntax for type integer: "secret"', secrets),
      ),
    ).toBe('SQLSTATE 22P02')
  })

  it('cuts what is long, and says something of what is no error', () => {
    expect(describeDatabaseError(failure('P0001', 'x'.repeat(1000)))).toHaveLength(
      'SQLSTATE P0001: '.length + 200,
    )
    expect(describeDatabaseError(new Error('y'.repeat(1000)))).toHaveLength(200)
    expect(describeDatabaseError('secret')).toBe('unknown failure')
  })
})

describe('withoutValues', () => {
  it('takes details out of a database error and leaves the rest', () => {
    const error = failure('23502', 'null value in column "a"', {
      detail: 'secret',
      where: 'secret',
      constraint: 'c',
      table: 't',
    })
    expect(withoutValues(error)).toBe(error)
    expect(error).toMatchObject({
      code: '23502',
      constraint: 'c',
      table: 't',
      message: 'null value in column "a"',
    })
    expect(JSON.stringify(error) + String(error.stack)).not.toContain('secret')
  })

  it('takes the value out of message and stack of class 22', () => {
    const error = failure('22003', 'value "secret" is out of range')
    withoutValues(error)
    expect(error.message + String(error.stack)).not.toContain('secret')
  })

  it('leaves what is not a database error alone', () => {
    const error = Object.assign(new Error('mine'), { detail: 'mine' })
    expect(withoutValues(error)).toBe(error)
    expect(error.detail).toBe('mine')
    expect(withoutValues('text')).toBe('text')
  })
})
