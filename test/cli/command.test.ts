import type { ArgsDef } from 'citty'
import { describe, expect, it } from 'vitest'
import { readArguments } from '../../src/cli/command.ts'

const declared = {
  id: { type: 'positional', required: true },
  order: { type: 'string' },
  overdue: { type: 'boolean' },
  simulate: { type: 'boolean', default: true },
  state: { type: 'enum', options: ['open', 'closed'] },
  type: { type: 'string' },
} as const satisfies ArgsDef

const read = (...line: string[]): ReturnType<typeof readArguments> => readArguments(line, declared)

describe('readArguments', () => {
  it('reads positionals, values, switches and their negation', () => {
    expect(
      read('evt_1', '--order', '1001', '--overdue', '--no-simulate', '--state=open').args,
    ).toMatchObject({ id: 'evt_1', order: '1001', overdue: true, simulate: false, state: 'open' })
  })

  it('leaves what was not given at its default', () => {
    expect(read('evt_1').args).toMatchObject({
      order: undefined,
      overdue: undefined,
      simulate: true,
    })
  })

  it('takes the last of an option that is given twice, and all of them as a list', () => {
    const { args, lists } = read('evt_1', '--type', 'a,b', '--type', 'c')
    expect(args['type']).toBe('c')
    expect(lists.get('type')).toEqual(['a', 'b', 'c'])
  })

  it('takes a negative number behind an option as its value, for the command to judge', () => {
    expect(read('evt_1', '--order', '-1').args).toMatchObject({ id: 'evt_1', order: '-1' })
    expect(read('--order', '2', '--', '-1').args).toMatchObject({ id: '-1', order: '2' })
  })

  it('takes what follows -- as it is', () => {
    expect(read('--', '--order').args).toMatchObject({ id: '--order' })
  })

  it.each([
    [['evt_1', '--ordr', '1'], 'unknown option --ordr, did you mean --order?'],
    [['evt_1', '--no-ordr'], 'unknown option --no-ordr, did you mean --order?'],
    [['evt_1', '--zzzzzzzzz'], 'unknown option --zzzzzzzzz'],
    [['evt_1', '-x'], 'unknown option --x'],
    [[], 'ID is missing'],
    [['evt_1', 'evt_2'], '"evt_2" is one argument too many'],
    [['evt_1', '--state', 'opn'], '--state must be one of open, closed, not "opn"'],
    [['evt_1', '--order='], '--order has an empty value'],
    [
      ['evt_1', '--order', '--overdue'],
      '--order has no value: one that begins with a dash is written --order=-…',
    ],
  ])('refuses %j', (line, message) => {
    expect(() => read(...line)).toThrow(expect.objectContaining({ code: 'HKL_CLI_USAGE', message }))
  })

  it.each([
    [['evt_1', '--order'], /--order/],
    [['evt_1', '--overdue=yes'], /--overdue/],
  ])('refuses %j in one line that names the option', (line, message) => {
    expect(() => read(...line)).toThrow(message)
    expect(() => read(...line)).toThrow(/^[^\n]+$/)
  })
})
