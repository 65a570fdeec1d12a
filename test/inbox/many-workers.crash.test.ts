import { expect, it } from 'vitest'
import { expectAllIsWell, post, workload } from '../support/fault-cases.ts'
import { startDriver, type Driver } from '../support/failpoint-process.ts'
import { until } from '../support/probe.ts'
import { createShop } from '../support/shop.ts'
import { sent } from '../support/shop-history.ts'

it('many processes receive and work side by side, some of which are killed: one of each, and nobody deadlocks', async () => {
  const shop = await createShop()
  const load = workload(60)
  const drivers: Driver[] = []
  const limits = { workBatch: 9, firstRetryMs: 20, maxRetryMs: 100 }
  try {
    const start = async (works: boolean): Promise<Driver> => {
      const driver = await startDriver({
        url: shop.database.url,
        app: 'shop',
        receives: !works,
        works,
        loops: 2,
        limits,
      })
      drivers.push(driver)
      return driver
    }
    const receivers = await Promise.all([start(false), start(false)])
    const workers = await Promise.all([start(true), start(true), start(true)])
    const seen: ReturnType<typeof sent>[] = []
    // every event goes to both receivers at once, and again until it is acknowledged
    const deliver = async (event: object, at: number): Promise<void> => {
      for (const receiver of receivers) {
        for (let status: number | null = null; status !== 200;) {
          status = await post(receiver.port, event, 5000)
          seen.push(sent(event, status === 200 ? 'ok' : 'info'))
        }
      }
      if (at === 40) await workers[0]?.end()
      if (at === 90) await workers[1]?.end()
    }
    for (let from = 0; from < load.sent.length; from += 20)
      await Promise.all(
        load.sent.slice(from, from + 20).map((event, at) => deliver(event, from + at)),
      )
    await until(
      () =>
        shop.rows(
          `select 1 from inbox_ready union all select 1 from inbox_delayed union all select 1 from inbox_suspects union all select 1 from inbox_batches`,
        ),
      (rows) => rows.length === 0,
      40_000,
    )
    for (const driver of drivers) await driver.end()
    await until(
      () =>
        shop.rows(
          `select 1 from pg_stat_activity where application_name = 'driver' and datname = current_database()`,
        ),
      (rows) => rows.length === 0,
    )
    await expectAllIsWell(shop, load, seen)
    expect(
      await shop.rows(
        `select deadlocks::int from pg_stat_database where datname = current_database()`,
      ),
    ).toEqual([{ deadlocks: 0 }])
  } finally {
    for (const driver of drivers) await driver.end()
    await shop.close()
  }
})
