import { describe, expect, it } from 'vitest'
import { classifyStatement, splitStatements } from '../../src/drill/proxy/sql-statements.ts'

describe('splitStatements', () => {
  it('splits at semicolons and drops empty statements', () => {
    expect(splitStatements('begin; insert into t values (1);; commit;')).toEqual([
      'begin',
      'insert into t values (1)',
      'commit',
    ])
  })

  it('leaves semicolons alone in strings, names and dollar quotes', () => {
    const statements = [
      `select 'a;''b;'`,
      `select "c;""d"`,
      `do $x$ begin; commit; $y$ ; $y$ end $x$`,
      `do $$ commit; $$`,
    ]
    expect(splitStatements(statements.join(';'))).toEqual(statements)
  })

  it('drops comments, and what is written in them', () => {
    expect(splitStatements('/* app; */ commit -- work; commit')).toEqual(['commit'])
  })
})

describe('classifyStatement', () => {
  it.each([
    ['BEGIN isolation level serializable', 'begin'],
    ['start transaction', 'begin'],
    ['Commit and chain', 'commit'],
    ['END', 'commit'],
    ['rollback', 'rollback'],
    ['ABORT', 'rollback'],
    ['rollback to savepoint a', 'other'],
    ['rollback work to a', 'other'],
    ['select 1', 'read'],
    ['show fsync', 'read'],
    ['with x as (insert into t values (1) returning 1) select * from x', 'other'],
    ['endless', 'other'],
    ['committed', 'other'],
  ] as const)('calls %j %s', (statement, kind) => {
    expect(classifyStatement(statement)).toBe(kind)
  })
})
