import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { may, permissionsOf, roles, type Permission } from '../../src/api/access.ts'
import { apiRoutes } from '../../src/api/routes.ts'
import type { Role } from '../../src/compose/console-options.ts'
import { identityOf, startApi, type TestApi } from '../support/console-api.ts'
import { createBench, type Bench } from '../support/hookledger-database.ts'
import { shopOptions } from '../support/console-bench.ts'

let bench: Bench
let api: TestApi
beforeAll(async () => {
  bench = await createBench(shopOptions())
  api = await startApi(bench.hookledger)
})
afterAll(() => bench.close())

/** What somebody of each role may: written out once more, so that a change of the table is seen here. */
const rights: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: ['read'],
  operator: ['read', 'operate'],
  approver: ['read', 'approve'],
  privacy: ['read', 'reveal', 'erase'],
  admin: ['read', 'operate', 'approve', 'reveal', 'erase', 'administer'],
}
const known: readonly Permission[] = ['public', ...rights.admin]

/** Every route that is more than a look at what is there: a new one is nobody's until it stands here. */
const permissions: Readonly<Record<string, Permission>> = {
  'GET /session': 'public',
  'GET /openapi.json': 'public',
  'POST /session/end': 'read',
  'GET /sessions': 'administer',
  'POST /sessions/{session_id}/end': 'administer',
  'POST /events/{source}/{event_id}/replay': 'operate',
  'POST /events/{source}/{event_id}/redecide': 'operate',
  // its plan reads the body, which is recorded
  'POST /events/{source}/{event_id}/redecide/plan': 'operate',
  'POST /operations/{operation_id}/retry': 'operate',
  'POST /operations/{operation_id}/resolve': 'operate',
  'POST /operations/{operation_id}/discard': 'operate',
  'POST /findings/{finding_id}/assign': 'operate',
  'POST /findings/{finding_id}/dismiss': 'operate',
  'POST /findings/{finding_id}/apply': 'operate',
  // asks the provider
  'GET /findings/{finding_id}/plan': 'operate',
  'POST /grants': 'operate',
  'POST /grants/{order_id}/end': 'operate',
  'POST /subjects/{subject}/merge': 'operate',
  'POST /customers/link': 'operate',
  'POST /bulk': 'operate',
  'POST /bulk/{bulk_id}/start': 'operate',
  'POST /bulk/{bulk_id}/cancel': 'operate',
  'POST /bulk/{bulk_id}/approve': 'approve',
  'POST /bulk/{bulk_id}/reject': 'approve',
  'POST /reveal/event': 'reveal',
  'POST /reveal/operation': 'reveal',
  'POST /reveal/evidence': 'reveal',
  'POST /subjects/{subject}/erase/plan': 'erase',
  'POST /subjects/{subject}/erase': 'erase',
}

/** Some value for every parameter. */
const pathOf = (path: string): string =>
  path.replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000')

describe('the table of routes', () => {
  it('gives every route a permission that is known, and no route twice', () => {
    expect(apiRoutes.length).toBeGreaterThan(40)
    for (const { method, path, permission } of apiRoutes)
      expect(known, `${method} ${path}`).toContain(permission)
    const names = apiRoutes.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(names).size).toBe(names.length)
  })

  it('lets nobody read or act who is not known, but for the way in', () => {
    const open = apiRoutes.filter(({ permission }) => permission === 'public')
    expect(open.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /session',
      'GET /openapi.json',
    ])
  })

  it('gives what is no plain reading the permission that is written here, too', () => {
    const special = apiRoutes
      .filter(({ method, permission }) => !(method === 'GET' && permission === 'read'))
      .map(({ method, path, permission }) => [`${method} ${path}`, permission])
    expect(Object.fromEntries(special)).toEqual(permissions)
  })

  it('says what each role may as it stands in the guide', () => {
    expect(permissionsOf).toEqual(rights)
  })
})

describe.each([null, ...roles])('as %s', (role) => {
  it.each(apiRoutes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s is refused, or is not, as its permission says',
    async (_, { method, path, permission }) => {
      const answer = await api.as(role).ask(method, pathOf(path))
      const is = permission === 'public' || (role !== null && rights[role].includes(permission))
      if (is) expect([401, 403]).not.toContain(answer.status)
      else expect(answer.status).toBe(role === null ? 401 : 403)
      expect(answer.status, answer.text).not.toBe(500)
      expect(may(identityOf(role), permission)).toBe(is)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    },
  )
})

describe('somebody with several roles', () => {
  it('may what each of them may', async () => {
    const both = api.as({ actor: 'ada', roles: ['viewer', 'approver'] })
    expect(await both.get('/session')).toMatchObject({
      actor: 'ada',
      permissions: ['approve', 'read'],
    })
    const none = api.as({ actor: 'bob', roles: [] })
    expect(await none.ask('GET', '/orders')).toMatchObject({
      status: 403,
      code: 'HKL_API_FORBIDDEN',
    })
  })
})
