/**
 * `process`: a queue of events worked off, each a decision, a payment, an effect, a transition of its
 * order and an entitlement; by Hookledger and by others that make the same writes.
 */
import { pickBest, poolSize, ratioOf, runContest, type Result } from './contest.ts'
import { prepareStatements } from './contestants/business-writes.ts'
import { graphileWorker } from './contestants/graphile-worker.ts'
import { hookledger } from './contestants/hookledger.ts'
import { ownSqlApply, ownSqlHandler, pgBossApply, pgBossHandler } from './contestants/own-sql.ts'
import { pgBoss } from './contestants/pg-boss.ts'
import { setBasedSql } from './contestants/set-based-sql.ts'
import type { BenchContext, Report } from './report.ts'

const pgBossSettings = [
  { loops: 2, batch: 50, width: 5 },
  { loops: 2, batch: 100, width: 10 },
  { loops: 4, batch: 50, width: 5 },
] as const

/** Runs the comparison. */
export async function benchProcess({ server, options, log }: BenchContext): Promise<Report> {
  if (options.prepared) prepareStatements()
  const trial = Math.ceil(options.events / 10)
  log('choosing the best settings of the others')
  const graphile = await pickBest(server, [4, 10, 20].map(graphileWorker), trial)
  const boss = await bestPgBoss(server, trial)
  const sets = await pickBest(
    server,
    [setBasedSql(1, 500), setBasedSql(2, 500), setBasedSql(3, 500), setBasedSql(2, 200)],
    trial * 2,
  )
  const ownEvents = Math.ceil(options.events / 4)
  const results = await runContest(
    server,
    [
      { contestant: hookledger(), events: options.events },
      { contestant: graphile, events: options.events },
      { contestant: pgBoss(boss), events: options.events },
      { contestant: sets, events: options.events },
      { contestant: ownSqlApply(), events: ownEvents },
      { contestant: pgBossApply(boss), events: ownEvents },
      { contestant: ownSqlHandler(), events: ownEvents },
      { contestant: pgBossHandler(boss), events: ownEvents },
    ],
    options.rounds,
    log,
  )
  const apply = ratioOf(results, 'own_sql_apply', 'pg_boss_own_sql')
  const handler = ratioOf(results, 'own_sql_handler', 'pg_boss_handler')
  return {
    bench: 'process',
    unit: 'events/s',
    conditions: {
      pool: String(poolSize),
      statements: options.prepared ? 'prepared by name' : 'as drivers send them by default',
    },
    results: [...results.values()].map(shown),
    ratios: {
      vs_graphile_worker: ratioOf(results, 'hookledger', graphile.name),
      vs_pg_boss: ratioOf(results, 'hookledger', 'pg_boss'),
      vs_set_based_sql: ratioOf(results, 'hookledger', sets.name),
      own_sql_vs_pg_boss: Math.min(apply, handler),
      own_sql_apply_vs_pg_boss: apply,
      own_sql_handler_vs_pg_boss: handler,
    },
    floors: {
      vs_graphile_worker: 8,
      vs_pg_boss: 8,
      vs_set_based_sql: 0.7,
      own_sql_vs_pg_boss: 1.5,
    },
  }
}

async function bestPgBoss(
  server: BenchContext['server'],
  events: number,
): Promise<(typeof pgBossSettings)[number]> {
  const contestants = pgBossSettings.map((settings) => pgBoss(settings))
  const best = await pickBest(server, contestants, events)
  return pgBossSettings[contestants.indexOf(best)] ?? pgBossSettings[0]
}

function shown(result: Result): Result {
  return { ...result, median: Math.round(result.median) }
}
