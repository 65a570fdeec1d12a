import { describe, expect, it } from 'vitest'
import { PermanentError, RetryAfter } from '../../src/core/errors.ts'
import { judgeEventFailure } from '../../src/inbox/batch-failure.ts'

const limits = { maxAttempts: 10, firstRetryMs: 1000, maxRetryMs: 3_600_000 }
const sqlError = (code: string): Error => Object.assign(new Error('refused'), { code })

describe('judgeEventFailure', () => {
  it.each(['23514', '23502', '22P05', '54000'])(
    'ends an event dead at once whose input can never be written: %s',
    (code) => {
      expect(judgeEventFailure(sqlError(code), 0, limits)).toMatchObject({ dead: true })
    },
  )

  it.each(['23505', '23503', '23P01', '40P01', '55P03', '57014'])(
    'tries again what another transaction can cure: %s',
    (code) => {
      expect(judgeEventFailure(sqlError(code), 0, limits)).toMatchObject({ dead: false })
    },
  )

  it('ends an event dead at once that says so, and after the last attempt', () => {
    expect(judgeEventFailure(new PermanentError('never'), 0, limits)).toEqual({
      dead: true,
      reason: expect.stringContaining('never') as string,
    })
    expect(judgeEventFailure(new Error('again'), 9, limits)).toMatchObject({ dead: true })
  })

  it('waits as long as it is asked to, at most the longest delay', () => {
    expect(judgeEventFailure(new RetryAfter(5000), 0, limits)).toMatchObject({
      dead: false,
      delayMs: 5000,
    })
    expect(judgeEventFailure(new RetryAfter(1e12), 0, limits)).toMatchObject({
      dead: false,
      delayMs: 3_600_000,
    })
    expect(judgeEventFailure(new RetryAfter(-5), 0, limits)).toMatchObject({
      dead: false,
      delayMs: 0,
    })
  })

  it('backs off exponentially with jitter, and keeps the message on one line', () => {
    for (let failures = 0; failures < 9; failures++) {
      const verdict = judgeEventFailure(new Error('a\nb\u001b[31m'), failures, limits)
      if (verdict.dead) throw new Error('dead too early')
      expect(verdict.delayMs).toBeGreaterThanOrEqual(500 * 2 ** failures)
      expect(verdict.delayMs).toBeLessThanOrEqual(1000 * 2 ** failures)
      expect(verdict.error).not.toMatch(/[\n\u001b]/)
    }
  })
})
