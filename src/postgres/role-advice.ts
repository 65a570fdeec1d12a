/**
 * What does not hold with the roles as they are. One role that owns everything is enough to run, and
 * every promise but P9 rests on the schema itself; this says what P9 would need.
 */
import type { Database } from './executor.ts'

interface Standing {
  readonly login: string
  readonly superuser: boolean
  readonly owns: boolean
  readonly reads_bodies: boolean
  readonly others: string | null
  readonly verbosity: string
}

/**
 * Looks at the present login and at who else may read bodies; empty when P9 holds. Nothing of this
 * stops a start: `migrate` and `doctor` show it.
 */
export async function adviseRoles(db: Database): Promise<string[]> {
  const [row] = await db.query<Standing>({
    text: `select session_user as login, u.rolsuper as superuser,
        pg_has_role(session_user, p.relowner, 'member') as owns,
        has_column_privilege(session_user, p.oid, 'body', 'select') as reads_bodies,
        (select string_agg(distinct case g.grantee when 0 then 'public' else g.grantee::regrole::text end, ', ')
         from pg_class t, aclexplode(t.relacl) g
         where t.relnamespace = p.relnamespace and t.relname ~ '^payloads' and t.relkind in ('r', 'p')
           and g.privilege_type = 'SELECT' and g.grantee <> t.relowner) as others,
        current_setting('log_error_verbosity') as verbosity
      from pg_class p, pg_roles u where p.oid = to_regclass($1) and u.rolname = session_user`,
    values: [`${db.schema}payloads`],
  })
  if (row === undefined) return []
  const advice: string[] = []
  if (row.superuser || row.owns || row.reads_bodies) {
    const how = row.superuser ? 'is a superuser' : row.owns ? 'owns the tables' : 'may read them'
    advice.push(
      `P9 (restricted payloads) rests on good will here: login ${row.login} ${how}, so nothing stops a reading that leaves no record; "hookledger migrate --roles" makes separate roles`,
    )
  }
  if (row.others !== null) {
    advice.push(
      `P9 does not hold for ${row.others}: they were given the right to read tables of payloads (alter default privileges, perhaps); revoke it`,
    )
  }
  if (row.verbosity !== 'terse') {
    advice.push(
      `log_error_verbosity is ${row.verbosity}: the server's log would show the beginning of a body that a constraint refuses; terse does not`,
    )
  }
  return advice
}
