/** A crawler over every GET of the table: each answers as documented, and leaves every table as it was. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../src/api/routes.ts'
import { createConsoleHistory, pathWith, type ConsoleHistory } from '../support/console-history.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { tableContents } from '../support/table-contents.ts'

let history: ConsoleHistory
let api: TestApi
beforeAll(async () => {
  history = await createConsoleHistory()
  api = await startApi(history.hookledger)
})
afterAll(() => history.close())

/** What a route needs to be asked with. */
const queries: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/search': { q: '1001' },
}

/** Plans that ask the provider, which this shop cannot. */
const askProvider = ['/findings/{finding_id}/plan']

const reads = apiRoutes.filter(({ method }) => method === 'GET')

describe('reading', () => {
  it.each(reads.filter(({ path }) => !askProvider.includes(path)).map(({ path }) => path))(
    'GET %s answers as documented',
    async (path) => {
      const query = queries[path]
      const at = pathWith(path, history.parameters)
      const answer = await api.ask('GET', at, query === undefined ? {} : { query })
      expect(answer.status, answer.text).toBe(200)
    },
  )

  it('changes nothing, whatever is read and by whom', async () => {
    const before = await tableContents(history.pool)
    expect(Object.keys(before).length).toBeGreaterThan(40)
    for (const role of ['admin', 'viewer', 'privacy', null] as const) {
      for (const { path } of reads) {
        const at = pathWith(path, history.parameters)
        const query = queries[path]
        await api.as(role).ask('GET', at, query === undefined ? {} : { query })
      }
    }
    expect(await tableContents(history.pool)).toEqual(before)
  })

  it.each(reads.filter(({ path }) => path.includes('{')).map(({ path }) => path))(
    'GET %s of what is not there is 404 or 400, and of odd names too',
    async (path) => {
      const odd = ['00000000-0000-4000-8000-000000000009', 'nobody', `'; drop--`, '%', '../x', '💥']
      for (const value of odd) {
        const at = path.replaceAll(/\{\w+\}/g, encodeURIComponent(value))
        const answer = await api.ask('GET', at)
        expect([400, 404], `${at}: ${answer.text}`).toContain(answer.status)
      }
    },
  )

  it.each(reads.map(({ path }) => path))('GET %s refuses what it does not know', async (path) => {
    const at = pathWith(path, history.parameters)
    const answer = await api.ask('GET', at, { query: { ...queries[path], no_such: 'x' } })
    expect(answer).toMatchObject({ status: 400, code: 'HKL_API_INPUT_INVALID' })
    expect(answer.text).toContain('no_such')
  })
})
