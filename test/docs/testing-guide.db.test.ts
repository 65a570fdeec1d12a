import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { writeExamples, type ExampleProject } from './example-project.ts'
import { page } from './pages.ts'

let database: TestDatabase
let project: ExampleProject
const before = process.env['DATABASE_URL']

beforeAll(async () => {
  database = await createHookledgerDatabase()
  process.env['DATABASE_URL'] = database.url
  project = writeExamples(page('docs/guides/testing.md'))
})
afterAll(async () => {
  if (before === undefined) delete process.env['DATABASE_URL']
  else process.env['DATABASE_URL'] = before
  project.remove()
  await database.drop()
})

describe('the database example of docs/guides/testing.md', () => {
  it('grants what was bought, on a schema that was only migrated', async () => {
    const { buy, hookledger } = (await project.load('shop.ts')) as {
      buy: (order: string) => Promise<string[]>
      hookledger: { stop(): Promise<void> }
    }
    try {
      expect(await buy('1001')).toEqual(['pro'])
    } finally {
      await hookledger.stop()
    }
  })
})
