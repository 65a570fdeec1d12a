/** graphile-worker: a job an event, each in a transaction of its own. */
import { Logger, run } from 'graphile-worker'
import { countFulfilled, fulfillOne, prepareBusiness, type Session } from './business-writes.ts'
import { expectAll, type Contestant } from './contestant.ts'

const quiet = new Logger(() => () => {})

/** graphile-worker with this many jobs at a time. */
export function graphileWorker(concurrency: number): Contestant {
  return {
    name: 'graphile_worker',
    settings: `concurrency ${concurrency}`,
    prepare: async ({ pool, schema, events }) => {
      await prepareBusiness(pool, schema, events)
      const jobs = `${schema}_jobs`
      let left = events.length
      let done = (): void => {}
      const options = { pgPool: pool, schema: jobs, logger: quiet, noHandleSignals: true }
      const migrator = await run({ ...options, concurrency: 1, taskList: {} })
      await migrator.stop()
      await pool.query(
        `select ${jobs}.add_jobs(array(select row('fulfill', b::json, null, null, null, null, null, null)::${jobs}.job_spec from unnest($1::text[]) as b))`,
        [events.map((event) => event.body.toString())],
      )
      return {
        run: async () => {
          const finished = new Promise<void>((resolve) => (done = resolve))
          const runner = await run({
            ...options,
            concurrency,
            taskList: {
              fulfill: async (payload) => {
                await fulfillOne(pool, schema, payload as Session)
                if (--left === 0) done()
              },
            },
          })
          await finished
          await runner.stop()
        },
        finish: async () => expectAll(await countFulfilled(pool, schema), events.length),
      }
    },
  }
}
