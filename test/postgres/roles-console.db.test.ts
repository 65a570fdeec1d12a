/** The console with separate log-ins: its role signs people in and reads everything but payloads, and changes nothing else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger } from 'hookledger'
import { apiRoutes } from '../../src/api/routes.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { roleName } from '../../src/postgres/roles.ts'
import { createSessions, hashText } from '../../src/server/console/sessions.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { deliverTo, probe, probeOptions, workOff } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'
import { createRoleBench, refusal, type LoginRole, type RoleBench } from './role-logins.ts'

let bench: RoleBench
const apis = new Map<LoginRole, TestApi>()
const open: { stop(): Promise<void> }[] = []
beforeAll(async () => {
  bench = await createRoleBench()
  const options = { ...probeOptions([subjectWorkflow()]), schema: bench.schemaName }
  const as = (role: LoginRole) => {
    const hookledger = createHookledger({ ...options, database: bench.as[role] })
    open.push(hookledger)
    return hookledger
  }
  const worker = as('worker')
  await deliverTo(as('receiver'), [probe('set', { order: 'o1', subject: 'user:ada' })])
  await workOff(worker)
  apis.set('console', await startApi(as('console')))
  // who may act, too, is a member of both
  const roles = (['console', 'worker'] as const).map((role) => roleName(bench.schemaName, role))
  await bench.admin.query(`grant ${roles[0]} to ${roles[1]}`)
  apis.set('worker', await startApi(worker))
})
afterAll(async () => {
  for (const each of open) await each.stop()
  await bench.drop()
})

/** What is there. */
const parameters: Readonly<Record<string, string>> = { order_id: 'o1', subject: 'user:ada' }
const reads = apiRoutes
  .filter(({ method, permission }) => method === 'GET' && permission !== 'operate')
  .map(({ path }) => path)

describe.each([
  ['console', 'console'],
  ['console together with that of a worker', 'worker'],
] as const)('the role of a %s', (_, role) => {
  it.each(reads)('suffices for GET %s', async (path) => {
    const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(parameters[name] ?? '00000000-0000-4000-8000-000000000000'),
    )
    const query = path === '/search' ? { q: 'o1' } : {}
    const answer = await apis.get(role)!.ask('GET', at, { query })
    expect([200, 404], answer.text).toContain(answer.status)
  })

  it('suffices to begin a session, to know it, to list it and to end it', async () => {
    const db = createDatabase(bench.as[role], bench.schemaName)
    const sessions = createSessions(() => db, { idleMs: 60_000, sessionMs: 60_000 })
    const token = await sessions.begin({ actor: 'ada', roles: ['viewer', 'approver'] })
    expect((await sessions.visitor(token)).identity).toEqual({
      actor: 'ada',
      roles: ['viewer', 'approver'],
    })
    await bench.admin.query(`update console_sessions set last_seen_at = now() - interval '31 s'`)
    expect((await sessions.visitor(token)).session).not.toBeNull()
    const [view] = await sessions.list()
    expect(await sessions.end(view?.session_id ?? '', 'bob')).toBe(true)
    expect((await sessions.visitor(token)).identity).toBeNull()
    await sessions.endOf(token)
    const text = `insert into console_sign_ins (browser_sha256, state, nonce, verifier) values ($1::text::bytea, 's', 'n', 'v')`
    expect(await refusal(bench.as[role], text, [hashText(role)])).toBe('done')
    expect(await refusal(bench.as[role], 'delete from console_sign_ins')).toBe('done')
  })

  it('does not show the secret that tokens are made from', async () => {
    expect(await refusal(bench.as[role], 'select console_secret()')).toBe('done')
    const { rows } = await bench.admin.query<{ same: boolean }>(
      'select console_secret() = secret as same from installation',
    )
    expect(rows).toEqual([{ same: false }])
  })
})

describe('the role of a console', () => {
  it('acts on nothing, and its answer says which role may: together with that of a worker it acts', async () => {
    const grant = {
      id: '6f0a8a4e-52c5-4b7e-9d3c-0d6a1b2c3d4e',
      subject: 'user:ada',
      entitlements: [{ entitlement: 'pro' }],
      reason: 'a gift',
      confirm: 'user:ada',
    }
    const answer = await apis.get('console')!.ask('POST', '/grants', { body: grant })
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('role')])
    expect((await apis.get('worker')!.ask('POST', '/grants', { body: grant })).status).toBe(200)
    for (const statement of [
      'insert into operator_acts (act, target, reason, actor) values (1, 2, 3, 4)',
      `update console_sessions set actor = 'eve'`,
      `update console_sessions set roles = '{admin}'`,
      'truncate console_sessions',
      'select secret from installation',
      'select body from payloads',
    ])
      expect([statement, await refusal(bench.as.console, statement)]).toEqual([statement, '42501'])
  })
})

it('lets no receiver see who is signed in, nor what tokens are made from', async () => {
  for (const statement of ['select 1 from console_sessions', 'select console_secret()'])
    expect(await refusal(bench.as.receiver, statement)).toBe('42501')
})
