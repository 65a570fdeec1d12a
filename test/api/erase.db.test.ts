import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, type Probe } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

interface Report {
  readonly applied: boolean
  readonly bodies: number
  readonly pseudonym: string | null
  readonly confirm: string
}

let bench: Probe
let api: TestApi
beforeAll(async () => {
  bench = await createProbe({ workflows: [subjectWorkflow()] })
  api = (await startApi(bench.hookledger)).as('privacy')
  await bench.deliver(
    probe('set', { order: 'o1', subject: 'user:ada' }),
    probe('set', { order: 'o2', subject: 'user:bob' }),
  )
  await bench.work()
})
afterAll(() => bench.close())

const path = '/subjects/user:ada/erase'
const act = { reason: 'they asked for it', confirm: 'user:ada' }

describe('erasing by the API', () => {
  it('plans without a trace of it', async () => {
    const plan = await api.post<Report>(`${path}/plan`, { also: ['ada@example.com'] })
    expect(plan).toMatchObject({ applied: false, bodies: 1, orders: 1, confirm: 'user:ada' })
    expect(await bench.rows('select from operator_acts')).toEqual([])
  })

  it.each([
    ['somebody without the right', 'operator', act, 403],
    ['no reason', 'privacy', { confirm: 'user:ada' }, 400],
    ['another text typed', 'privacy', { ...act, confirm: 'user:bob' }, 409],
    ['a text that is too short', 'privacy', { ...act, also: ['ada'] }, 400],
    ['what nobody asked for', 'privacy', { ...act, actor: 'mallory' }, 400],
  ] as const)('refuses %s, and no row says otherwise', async (_, role, body, status) => {
    expect((await api.as(role).ask('POST', path, { body })).status).toBe(status)
    expect(await bench.rows('select from operator_acts')).toEqual([])
    expect(await bench.rows('select from erasures')).toEqual([])
  })

  it('does not know a subject that nothing names', async () => {
    const asked = await api.ask('POST', '/subjects/user:nobody/erase/plan', { body: {} })
    expect(asked).toMatchObject({ status: 404, code: 'HKL_NOT_FOUND' })
  })

  it('refuses while something is pending, with what to do', async () => {
    await bench.deliver(probe('end', { order: 'o2', note: 'user:bob' }))
    const body = { reason: 'they asked for it', confirm: 'user:bob' }
    const asked = await api.ask('POST', '/subjects/user:bob/erase', { body })
    expect(asked).toMatchObject({ status: 409, code: 'HKL_ERASE_UNFINISHED' })
  })

  it('erases once, with the person who asked as actor', async () => {
    const done = await api.post<Report>(path, act)
    expect(done).toMatchObject({ applied: true, bodies: 1 })
    expect(
      await bench.rows(`select act, target, reason, actor from operator_acts where act = 'erase'`),
    ).toEqual([
      {
        act: 'erase',
        target: `subject:${done.pseudonym}`,
        reason: 'they asked for it',
        actor: 'privacy@example.com',
      },
    ])
    expect((await api.ask('POST', path, { body: act })).status).toBe(404)
  })
})
