import { describe, expect, it } from 'vitest'
import { Output, type OutputOptions } from '../../src/cli/output.ts'

function capture(options: Partial<OutputOptions> & { tty?: boolean } = {}): {
  out: Output
  stdout: () => string
  stderr: () => string
} {
  const printed = { stdout: '', stderr: '' }
  const stream = (name: 'stdout' | 'stderr') => ({
    isTTY: options.tty === true,
    write: (text: string) => (printed[name] += text),
  })
  const out = new Output({
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    json: false,
    quiet: false,
    color: true,
    ...options,
  })
  return { out, stdout: () => printed.stdout, stderr: () => printed.stderr }
}

describe('Output', () => {
  it('writes results to stdout and narration to stderr', () => {
    const { out, stdout, stderr } = capture()
    out.note('working')
    out.result({ count: 1 }, (safe) => `count ${safe.count}`)
    expect(stdout()).toBe('count 1\n')
    expect(stderr()).toBe('working\n')
  })

  it('writes one object with --json, bigint amounts as exact integers', () => {
    const { out, stdout } = capture({ json: true })
    out.result({ amount: 9007199254740993n, id: 'x' }, () => 'never')
    expect(stdout()).toBe('{"amount":9007199254740993,"id":"x"}\n')
  })

  it('writes one line a row with --json', () => {
    const { out, stdout } = capture({ json: true })
    out.rows([{ id: 1 }, { id: 2 }], () => 'never')
    expect(stdout()).toBe('{"id":1}\n{"id":2}\n')
  })

  it('says nothing but results and warnings with --quiet', () => {
    const { out, stdout, stderr } = capture({ quiet: true })
    out.note('working')
    out.progress('half')
    out.warn('look')
    out.result('done', (safe) => safe)
    expect(stderr()).toBe('warning: look\n')
    expect(stdout()).toBe('done\n')
  })

  it('escapes what would act on a terminal, in text and not in JSON', () => {
    const hostile = 'evt_\u001b[31m\r\n\u202e1'
    const text = capture({ tty: true })
    text.out.result({ id: hostile }, (safe) => safe.id)
    expect(text.stdout()).toBe('evt_\\x1b[31m\\x0d\\x0a\\u202e1\n')
    const json = capture({ json: true })
    json.out.result({ id: hostile }, () => '')
    expect(JSON.parse(json.stdout())).toEqual({ id: hostile })
  })

  it('colors only a terminal, and only where colors are wanted', () => {
    for (const [tty, color, colored] of [
      [true, true, true],
      [true, false, false],
      [false, true, false],
    ] as const) {
      const { out, stdout } = capture({ tty, color })
      out.result('fine', (safe, style) => style.good(safe))
      expect(stdout().includes('\u001b[32m')).toBe(colored)
    }
  })

  it('rewrites one line of progress on a terminal and clears it before anything else', () => {
    const { out, stderr } = capture({ tty: true, color: false })
    out.progress('1 of 2')
    out.progress('2 of 2')
    out.note('done')
    expect(stderr()).toBe('\r\u001b[2K1 of 2\r\u001b[2K2 of 2\r\u001b[2Kdone\n')
  })

  it('does not repeat progress for every step where there is no terminal', () => {
    const { out, stderr } = capture()
    for (let step = 0; step < 100; step++) out.progress(`step ${step}`)
    expect(stderr()).toBe('')
  })
})
