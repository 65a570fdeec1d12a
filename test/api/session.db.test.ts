import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createShop, type Shop } from '../support/shop.ts'
import { startApi, type TestApi } from '../support/console-api.ts'

describe('who asks', () => {
  let shop: Shop
  let api: TestApi
  beforeAll(async () => {
    shop = await createShop()
    api = await startApi(shop.hookledger)
  })
  afterAll(() => shop.close())

  it('tells an operator their name, roles, rights and token', async () => {
    expect(await api.as('operator').get('/session')).toMatchObject({
      actor: 'operator@example.com',
      roles: ['operator'],
      permissions: ['operate', 'read'],
      csrf: expect.stringMatching(/^[\w-]{43}$/),
      door: 'app',
      sign_in_path: null,
      environment: 'test',
      schema: 'hookledger',
      approval: { bulk_from: null },
    })
  })

  it('tells somebody unknown nothing but how to come in', async () => {
    expect(await api.as(null).get('/session')).toMatchObject({
      actor: null,
      roles: [],
      permissions: [],
      csrf: null,
      sign_in_path: null,
    })
  })

  it('has the rights of all roles of somebody who has two, once each', async () => {
    const both = api.as({ actor: 'ada', roles: ['privacy', 'approver'] })
    expect(await both.get('/session')).toMatchObject({
      permissions: ['approve', 'erase', 'read', 'reveal'],
    })
  })

  it('gives each person another token, and the same one in every process of the app', async () => {
    const token = async (asked: TestApi): Promise<string> =>
      (await asked.get<{ csrf: string }>('/session')).csrf
    const other = await startApi(shop.hookledger)
    expect(await token(api.as('viewer'))).toBe(await token(other.as('viewer')))
    expect(await token(api.as('viewer'))).not.toBe(await token(api.as('operator')))
  })

  it('answers what is below a prefix, and documents it there', async () => {
    const mounted = await startApi(shop.hookledger, { prefix: '/ops' })
    expect(await mounted.get('/session')).toMatchObject({ actor: 'admin@example.com' })
    expect(mounted.document).toMatchObject({ openapi: '3.1.0', servers: [{ url: '/ops' }] })
    const outside = await mounted.console.fetch(new Request('https://ops.test/api/session'))
    expect(outside.status).toBe(404)
  })
})
