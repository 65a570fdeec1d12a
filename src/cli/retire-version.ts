/**
 * Retires a version of a workflow that was deployed and taken back: while it counts as the newest, the
 * workers that run now leave alone what they do not know.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'

/**
 * Retires a version wherever it is registered, and records the act. Returns the workflows.
 *
 * @throws HookledgerError HKL_NOT_FOUND when no workflow has it
 */
export async function retireVersion(
  db: Database,
  version: string,
  actor: string,
): Promise<string[]> {
  const s = db.schema
  const rows = await db.query<{ workflow: string }>({
    text: `with retired as (
        update ${s}workflow_versions set retired_at = coalesce(retired_at, now()) where version = $1 returning workflow),
      recorded as (
        insert into ${s}operator_acts (act, target, reason, actor)
        select 'retire', 'workflow:' || workflow || ':' || $1, 'the version was taken back', $2 from retired order by workflow)
      select workflow from retired order by workflow`,
    values: [version, actor],
  })
  if (rows.length > 0) return rows.map((row) => row.workflow)
  const known = await db.query<{ workflow: string; version: string }>({
    text: `select workflow, version from ${s}workflow_versions where retired_at is null order by first_registered_at desc limit 10`,
  })
  const list = known.map((row) => `${row.version} (${row.workflow})`).join(', ')
  throw new HookledgerError(
    'HKL_NOT_FOUND',
    `no workflow has a version ${JSON.stringify(version)}; registered are ${list || 'none'}`,
  )
}
