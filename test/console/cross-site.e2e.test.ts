/** Another page in the same browser, with the cookies of somebody who may act, tries to act in their name. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'

let history: ConsoleHistory
let served: ConsoleBrowser
let seen: Seen
let elsewhere: Server
let origin: string
let statuses: number[]

beforeAll(async () => {
  history = await createConsoleHistory()
  served = await openBrowser(history.hookledger)
  elsewhere = createServer((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<h1>a nice page</h1>')
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  // the same host by another port: the browser sends the cookies along
  origin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  seen = await served.look({ as: 'admin' })
  statuses = []
  seen.page.on('response', (response) => {
    if (response.url().startsWith(served.address)) statuses.push(response.status())
  })
})
afterAll(async () => {
  await seen.close()
  elsewhere.closeAllConnections()
  elsewhere.close()
  await served.close()
  await history.close()
})

const acts = (): Promise<object[]> =>
  history.fixture.sql('select act_id from hookledger.operator_acts')

const attempts: Readonly<Record<string, string>> = {
  'a form of plain text': `
    const form = Object.assign(document.createElement('form'), { method: 'POST', action: target, enctype: 'text/plain' })
    form.append(Object.assign(document.createElement('input'), { name: '{"reason":"ha ha', value: '"}' }))
    document.body.append(form); form.submit()`,
  'a form': `
    const form = Object.assign(document.createElement('form'), { method: 'POST', action: target })
    form.append(Object.assign(document.createElement('input'), { name: 'reason', value: 'ha ha' }))
    document.body.append(form); form.submit()`,
  'fetch with the cookies and no question asked first': `fetch(target, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"reason":"ha ha"}' }).catch(() => {})`,
  'fetch as JSON': `fetch(target, { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json', 'x-hookledger-csrf': 'x' }, body: '{"reason":"ha ha"}' }).catch(() => {})`,
  'a beacon': `navigator.sendBeacon(target, new Blob(['{"reason":"ha ha"}'], { type: 'text/plain' }))`,
}

describe('another page', () => {
  it.each(Object.entries(attempts))('cannot act by %s', async (_, code) => {
    const before = await acts()
    statuses.length = 0
    const path = `/api/findings/${history.finding}/assign`
    await seen.page.goto(origin)
    await seen.page.evaluate(`{ const target = ${JSON.stringify(served.address + path)}; ${code} }`)
    await seen.page.waitForTimeout(300)
    expect(statuses.filter((status) => status < 400)).toEqual([])
    expect(await acts()).toEqual(before)
  })

  it('cannot read what the console answers, nor put it into a frame', async () => {
    await seen.page.goto(origin)
    const read = await seen.page.evaluate<string>(
      `fetch(${JSON.stringify(`${served.address}/api/orders`)}, { credentials: 'include' }).then((r) => r.text(), (e) => 'refused: ' + e.name)`,
    )
    expect(read).toBe('refused: TypeError')
    await seen.page.evaluate(
      `document.body.append(Object.assign(document.createElement('iframe'), { src: ${JSON.stringify(`${served.address}/console`)} }))`,
    )
    await expect.poll(() => seen.faults.join('\n')).toMatch(/frame/i)
  })
})

describe('the page itself, with something of it missing', () => {
  it.each([
    ['the token', { 'content-type': 'application/json' }, 403],
    ['the content type', { 'content-type': 'text/plain', 'x-hookledger-csrf': 'TOKEN' }, 415],
    ['the right token', { 'content-type': 'application/json', 'x-hookledger-csrf': 'x' }, 403],
  ])('cannot act without %s', async (_, headers, status) => {
    const before = await acts()
    await seen.go('/')
    const answered = await seen.page.evaluate<number>(`(async () => {
      const { csrf } = await (await fetch('/api/session')).json()
      const headers = JSON.parse(${JSON.stringify(JSON.stringify(headers))}.replace('TOKEN', csrf))
      const body = JSON.stringify({ owner: 'mallory', reason: 'ha ha' })
      return (await fetch('/api/findings/${history.finding}/assign', { method: 'POST', headers, body })).status
    })()`)
    expect(answered).toBe(status)
    expect(await acts()).toEqual(before)
  })
})
