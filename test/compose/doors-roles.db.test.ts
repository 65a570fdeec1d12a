/** The doors with the rights of separate log-ins: a worker has what they need, and a receiver has not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { Adoption } from '../../src/compose/adopt.ts'
import { compareShadow, endShadow } from '../../src/compose/shadow.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createRoleBench, type RoleBench } from '../postgres/role-logins.ts'
import { shopOptions } from '../support/shop.ts'
import { writeTemporary } from '../support/temporary-file.ts'

let bench: RoleBench
beforeAll(async () => {
  bench = await createRoleBench()
})
afterAll(() => bench.drop())

function workerWith(shadow: readonly string[]): Hookledger {
  return createHookledger({
    ...shopOptions,
    schema: bench.schemaName,
    database: bench.as.worker,
    shadow,
    appEntitlements: async () => [],
  })
}

const by = { reason: 'it was asked for', actor: 'ada' }

describe('the role of a worker', () => {
  it('adopts in shadow, compares, ends the shadow, and grants', async () => {
    const shadow = workerWith(['license'])
    await partsOf(shadow).register()
    const db = createDatabase(bench.as.worker, bench.schemaName)
    const file = writeTemporary(
      [
        {
          order: '1',
          workflow: 'license',
          state: 'paid',
          names: [{ kind: 'payment_intent', value: 'pi_1' }],
          payments: [{ id: 'pi_1', amount: 4900, currency: 'USD' }],
          effects: [{ type: 'license' }],
          entitlements: [{ subject: 'user:1', entitlement: 'pro' }],
        },
        { event: 'evt_1', source: 'stripe' },
      ]
        .map((line) => JSON.stringify(line))
        .join('\n'),
    )
    const adoption = new Adoption(db, partsOf(shadow).config, file)
    const report = await adoption.write(await adoption.check(), by)
    expect(report).toMatchObject({ orders: { adopted: 1 }, events: { adopted: 1 } })
    await compareShadow(db, partsOf(shadow).config)
    const live = workerWith([])
    await partsOf(live).register()
    expect(await endShadow(db, partsOf(live).config, 'license', by)).toMatchObject({ orders: 1 })
    const id = await db.transaction((tx) =>
      live.grant(
        { query: async (text, values = []) => tx.execute({ text, values: values as never }) },
        { subject: 'user:2', entitlements: ['pro'], ...by },
      ),
    )
    expect(id).toMatch(/^grant_/)
    expect(await live.entitlements('user:1')).toHaveLength(1)
    expect(await live.entitlements('user:2')).toHaveLength(1)
  })
})

describe('the role of a receiver', () => {
  it('cannot grant', async () => {
    const hookledger = createHookledger({
      ...shopOptions,
      schema: bench.schemaName,
      database: bench.as.receiver,
    })
    const client = await bench.as.receiver.connect()
    try {
      await expect(
        hookledger.grant(client, { subject: 'user:3', entitlements: ['pro'], ...by }),
      ).rejects.toMatchObject({ code: '42501' })
    } finally {
      client.release()
    }
  })
})
