import { describe, expect, it } from 'vitest'
import { retryOnLocks } from '../../src/postgres/lock-retry.ts'

const failure = (code: string): Error => Object.assign(new Error(code), { code })

function failing(...codes: string[]): {
  readonly work: () => Promise<string>
  readonly runs: () => number
} {
  let runs = 0
  return {
    runs: () => runs,
    work: () => {
      const code = codes[runs++]
      return code === undefined ? Promise.resolve('done') : Promise.reject(failure(code))
    },
  }
}

describe('retryOnLocks', () => {
  it('asks again when a lock was not to be had or somebody else did the same', async () => {
    const { work, runs } = failing('55P03', '40P01', '23505', 'XX000')
    expect(await retryOnLocks(work)).toBe('done')
    expect(runs()).toBe(5)
  })

  it('throws at once what waiting does not mend', async () => {
    for (const code of ['42501', '42601', '23514', 'ECONNRESET']) {
      const { work, runs } = failing(code)
      await expect(retryOnLocks(work)).rejects.toMatchObject({ code })
      expect(runs()).toBe(1)
    }
  })

  it('gives up when its time is over', async () => {
    const { work, runs } = failing('55P03', '55P03')
    await expect(retryOnLocks(work, 0)).rejects.toMatchObject({ code: '55P03' })
    expect(runs()).toBe(1)
  })
})
