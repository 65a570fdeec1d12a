import { createHookledger, stripe } from 'hookledger'
import { describe, expect, it } from 'vitest'
import { requireApis } from '../../src/compose/gatherer.ts'
import { defaultGatherSettings, resolveGatherOptions } from '../../src/compose/gather-options.ts'
import { partsOf } from '../../src/hookledger.ts'
import { AskedProvider } from '../support/asked-provider.ts'

describe('the option gather', () => {
  it('has defaults for what is not given', () => {
    expect(resolveGatherOptions()).toEqual(defaultGatherSettings)
    expect(resolveGatherOptions({ callsPerSecond: 0.5, overdueMs: 1000 })).toEqual({
      ...defaultGatherSettings,
      callsPerSecond: 0.5,
      overdueMs: 1000,
    })
  })

  it.each([
    [{ callPerSecond: 3 }, 'did you mean "callsPerSecond"?'],
    [{ callsPerSecond: 0 }, 'gather.callsPerSecond must be a positive number'],
    [{ concurrency: 1.5 }, 'gather.concurrency must be a positive integer'],
    [{ callMs: 20_000 }, 'gather.leaseMs must be at least twice gather.callMs'],
  ])('refuses %j with one line', (given, message) => {
    expect(() => resolveGatherOptions(given as object)).toThrow(message)
  })
})

describe('a start', () => {
  const secret = 'whsec_0123456789abcdef'
  const partsFor = (apiKey?: string): ReturnType<typeof partsOf> =>
    partsOf(
      createHookledger({
        environment: 'test',
        sources: {
          probe: stripe({
            environment: 'test',
            signingSecrets: [secret],
            ...(apiKey !== undefined && { apiKey }),
          }),
        },
        workflows: [new AskedProvider().workflow()],
      }),
    )

  it('refuses a workflow that looks at Stripe without a key, in one line that names both', async () => {
    const message =
      'workflow "plans" asks the source "probe" for the present state of objects, and that has no API key: give stripe({ apiKey }) a secret or restricted key'
    await expect(partsFor().register()).rejects.toMatchObject({
      code: 'HKL_GATHER_NO_API',
      message,
    })
    const { registry, sources } = partsFor('sk_test_0123456789abcdef').config
    expect(() => requireApis(registry, sources)).not.toThrow()
  })
})
