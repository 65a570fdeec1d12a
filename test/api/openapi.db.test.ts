/** The document says what the server does: made from the same table, and answers are held to it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../src/api/routes.ts'
import { answerChecker, startApi, type ApiAnswer, type TestApi } from '../support/console-api.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
let api: TestApi
beforeAll(async () => {
  shop = await createShop()
  api = await startApi(shop.hookledger)
})
afterAll(() => shop.close())

/** Every object schema in a document, with where it is. */
function objectsIn(schema: unknown, at = ''): { at: string; schema: Record<string, unknown> }[] {
  if (typeof schema !== 'object' || schema === null) return []
  const fields = schema as Record<string, unknown>
  const below = Object.entries(fields).flatMap(([key, each]) => objectsIn(each, `${at}/${key}`))
  return fields['type'] === 'object' && fields['properties'] !== undefined
    ? [{ at, schema: fields }, ...below]
    : below
}

describe('the document', () => {
  it('has every route of the table, with its permission, and nothing else', () => {
    const documented = Object.entries(api.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, operation]) =>
          `${method.toUpperCase()} ${path} ${operation['x-permission']}: ${operation.summary}`,
      ),
    )
    const routes = apiRoutes.map(
      ({ method, path, permission, summary }) => `${method} /api${path} ${permission}: ${summary}`,
    )
    expect(documented.sort()).toEqual(routes.sort())
  })

  it('gives each operation an id of its own', () => {
    const ids = Object.values(api.document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('names every parameter of a path', () => {
    for (const [path, methods] of Object.entries(api.document.paths)) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      for (const { parameters = [] } of Object.values(methods))
        expect(parameters.filter((each) => each.in === 'path').map(({ name }) => name)).toEqual(
          names,
        )
    }
  })

  it('asks for the token of the page with every act', () => {
    for (const methods of Object.values(api.document.paths)) {
      const names = methods['post']?.parameters?.map(({ name }) => name)
      if (methods['post'] !== undefined) expect(names).toContain('x-hookledger-csrf')
    }
  })

  it('lets no object be sent with a field that nobody named', () => {
    for (const [path, { post }] of Object.entries(api.document.paths)) {
      for (const { at, schema } of objectsIn(post?.requestBody))
        expect([path, at, schema['additionalProperties']]).toEqual([path, at, false])
    }
  })

  it('takes an actor from nobody but who is signed in', () => {
    for (const [path, { post }] of Object.entries(api.document.paths)) {
      for (const { schema } of objectsIn(post?.requestBody))
        expect(Object.keys(schema['properties'] as object), path).not.toContain('actor')
    }
  })

  it('asks for a reason with every act, but for these', () => {
    const without = apiRoutes
      .filter(({ method }) => method === 'POST')
      .filter(({ path }) => {
        const body = api.document.paths[`/api${path}`]?.['post']?.requestBody
        return !JSON.stringify(body ?? null).includes('"reason"')
      })
    expect(without.map(({ path }) => path)).toEqual(exempt)
  })
})

/** Signing out, and a plan that changes nothing and is not recorded. */
const exempt = ['/session/end', '/sessions/{session_id}/end', '/subjects/{subject}/erase/plan']

describe('the check of the tests', () => {
  const answer = (data: unknown, status = 200): ApiAnswer => ({
    status,
    data,
    text: JSON.stringify(data),
    code: null,
    headers: new Headers({ 'content-type': 'application/json; charset=utf-8' }),
  })

  it('takes what the document says', async () => {
    const check = answerChecker(api.document)
    const session = await api.get<object>('/session')
    expect(() => check('GET', '/api/session', answer(session))).not.toThrow()
    const problem = { error: { code: 'HKL_NOT_FOUND', message: 'no such order' } }
    expect(() => check('GET', '/api/orders', answer(problem, 404))).not.toThrow()
  })

  it('finds a field too many, one that is missing, a wrong type and an odd problem', async () => {
    const check = answerChecker(api.document)
    const session = await api.get<Record<string, unknown>>('/session')
    const { csrf: _, ...less } = session
    for (const data of [{ ...session, secret: 'x' }, less, { ...session, roles: ['root'] }, []])
      expect(() => check('GET', '/api/session', answer(data))).toThrow('not as documented')
    expect(() => check('GET', '/api/session', answer({ message: 'x' }, 500))).toThrow(
      'not as documented',
    )
    expect(() => check('GET', '/api/nothing', answer({}))).toThrow('is in no document')
  })
})
