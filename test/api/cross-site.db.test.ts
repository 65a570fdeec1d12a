/** Acts that did not come from the console's own page are refused, whatever they are, and leave no row. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../src/api/routes.ts'
import { createConsoleHistory, pathWith, type ConsoleHistory } from '../support/console-history.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { tableContents } from '../support/table-contents.ts'

let history: ConsoleHistory
let api: TestApi
let before: Readonly<Record<string, string>>
beforeAll(async () => {
  history = await createConsoleHistory()
  api = await startApi(history.hookledger)
  before = await tableContents(history.pool)
})
afterAll(() => history.close())

const acts = apiRoutes.filter(({ method }) => method === 'POST')

/** What one of the acts needs, were it let in. */
const body = { reason: 'because', confirm: '1001', owner: 'eve', as: 'sent' }

const cases: readonly (readonly [
  what: string,
  status: number,
  headers: Readonly<Record<string, string | null>>,
])[] = [
  ['a form', 415, { 'content-type': 'application/x-www-form-urlencoded' }],
  ['a form with a file', 415, { 'content-type': 'multipart/form-data; boundary=x' }],
  ['plain text', 415, { 'content-type': 'text/plain' }],
  ['text that begins like JSON', 415, { 'content-type': 'application/json-patch' }],
  ['nothing that says what it is', 415, { 'content-type': null }],
  ['no origin', 403, { origin: null }],
  ['the origin of nobody', 403, { origin: 'null' }],
  ['another origin', 403, { origin: 'https://evil.test' }],
  ['an origin that only begins alike', 403, { origin: 'https://ops.test.evil.test' }],
  ['another port', 403, { origin: 'https://ops.test:8443' }],
  ['another site', 403, { 'sec-fetch-site': 'cross-site' }],
  ['another host of the same site', 403, { 'sec-fetch-site': 'same-site' }],
  ['no page at all', 403, { 'sec-fetch-site': 'none' }],
  ['no token', 403, { 'x-hookledger-csrf': null }],
  ['an empty token', 403, { 'x-hookledger-csrf': '' }],
  ['another token', 403, { 'x-hookledger-csrf': 'A'.repeat(43) }],
]

describe.each(cases)('an act with %s', (_, status, headers) => {
  it(`is refused with ${status}, every one of them`, async () => {
    for (const { path } of acts) {
      const at = pathWith(path, history.parameters)
      const answer = await api.ask('POST', at, { headers, body })
      expect([at, answer.status, answer.code]).toEqual([at, status, 'HKL_API_CROSS_SITE'])
    }
  })
})

it('is refused with the token of somebody else', async () => {
  const { csrf } = await api.as('viewer').get<{ csrf: string }>('/session')
  for (const { path } of acts) {
    const at = pathWith(path, history.parameters)
    const answer = await api.ask('POST', at, { headers: { 'x-hookledger-csrf': csrf }, body })
    expect([at, answer.status]).toEqual([at, 403])
  }
})

it('says what was missing, and not what it should have been', async () => {
  const { csrf } = await api.get<{ csrf: string }>('/session')
  const answer = await api.ask('POST', '/grants', { headers: { 'x-hookledger-csrf': 'guess' } })
  expect(answer.text).toContain('reload the page')
  expect(answer.text).not.toContain(csrf)
})

it('takes an act without Sec-Fetch-Site, which older browsers do not send', async () => {
  const answer = await api.ask('POST', '/grants', { headers: { 'sec-fetch-site': null } })
  expect([answer.status, answer.code]).toEqual([400, 'HKL_API_INPUT_INVALID'])
})

it('left every table as it was', async () => {
  expect(await tableContents(history.pool)).toEqual(before)
})
