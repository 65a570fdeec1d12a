/** Retention, run by every worker now and then: partitions ahead, old payloads and identities gone. */
import type { Limits } from '../core/limits.ts'
import type { Database } from '../postgres/executor.ts'

/** What one round of upkeep did. */
export interface UpkeepReport {
  readonly partitionsMade: number
  readonly partitionsDropped: number
  readonly identitiesDropped: number
}

/** At most this many identities go in one round: a bounded transaction each time. */
const identitiesAtOnce = 1000

/** Makes and drops what is due. Safe to run by many at once: each step is a SECURITY DEFINER function. */
export async function runUpkeep(db: Database, limits: Limits): Promise<UpkeepReport> {
  const call = async (text: string, values: number[]): Promise<number> => {
    const [row] = await db.query<{ n: number }>({ text: `select ${db.schema}${text} as n`, values })
    return row?.n ?? 0
  }
  return {
    partitionsMade: await call('make_payload_partitions($1::integer)', [limits.partitionsAheadDays]),
    partitionsDropped: await call('drop_payload_partitions($1::integer)', [limits.payloadRetentionDays]),
    identitiesDropped: await call('drop_identities($1::integer, $2::integer)', [limits.identityRetentionDays, identitiesAtOnce]),
  }
}
