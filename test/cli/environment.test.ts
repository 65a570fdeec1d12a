import { describe, expect, it } from 'vitest'
import { Environment } from '../../src/cli/environment.ts'

const of = (variables: Record<string, string | undefined>): Environment =>
  new Environment(variables, '/work/app')

describe('Environment', () => {
  it('counts an empty variable as unset', () => {
    const environment = of({
      DATABASE_URL: '',
      PORT: '',
      HOST: '',
      LOG_LEVEL: '',
      HOOKLEDGER_SCHEMA: '',
      HOOKLEDGER_DATA_DIR: '',
      NO_COLOR: '',
    })
    expect(environment.databaseUrl).toBeUndefined()
    expect(environment.port).toBeUndefined()
    expect(environment.host).toBeUndefined()
    expect(environment.logLevel).toBeUndefined()
    expect(environment.schema).toBeUndefined()
    expect(environment.noColor).toBe(false)
    expect(environment.dataDir).toBe('/work/app/.hookledger')
  })

  it('reads what is set', () => {
    const environment = of({
      DATABASE_URL: 'postgres://a:b@h/d',
      PORT: '0',
      HOST: '::1',
      LOG_LEVEL: 'DEBUG',
      HOOKLEDGER_SCHEMA: 'orders_2',
      HOOKLEDGER_DATA_DIR: 'data',
      NO_COLOR: '1',
    })
    expect(environment.databaseUrl).toBe('postgres://a:b@h/d')
    expect(environment.port).toBe(0)
    expect(environment.host).toBe('::1')
    expect(environment.logLevel).toBe('debug')
    expect(environment.schema).toBe('orders_2')
    expect(environment.dataDir).toBe('/work/app/data')
    expect(environment.noColor).toBe(true)
    expect(() => environment.checkAll()).not.toThrow()
  })

  it.each([
    ['PORT', 'abc'],
    ['PORT', '70000'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['PORT', ' 80'],
    ['LOG_LEVEL', 'loud'],
    ['HOOKLEDGER_SCHEMA', 'x;y'],
    ['HOOKLEDGER_SCHEMA', 'pg_own'],
    ['HOST', 'http://localhost/'],
    ['DATABASE_URL', 'localhost:5432'],
  ])('stops at a bad %s with one line that names it', (name, value) => {
    const failure = failureOf(() => of({ [name]: value }).checkAll())
    expect(failure).toMatchObject({ code: 'HKL_CONFIG_INVALID' })
    expect(failure.message).toContain(name)
    expect(failure.message).not.toContain('\n')
  })

  it('shows a bad value, but never one of a URL that holds a password', () => {
    expect(failureOf(() => of({ PORT: 'abc' }).port).message).toContain('"abc"')
    expect(
      failureOf(() => of({ DATABASE_URL: 'mysql://root:hunter2@h/d' }).databaseUrl).message,
    ).not.toContain('hunter2')
  })

  it('checks a variable only when it is asked for', () => {
    expect(of({ PORT: 'abc', LOG_LEVEL: 'info' }).logLevel).toBe('info')
  })
})

function failureOf(work: () => unknown): Error {
  try {
    work()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('it did not fail')
}
