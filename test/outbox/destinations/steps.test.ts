import { afterEach, describe, expect, it } from 'vitest'
import { installFailpoints, type Step } from '../../../src/core/failpoints.ts'
import type { Destination } from '../../../src/outbox/destination.ts'
import { custom } from '../../../src/outbox/destinations/custom.ts'
import { http } from '../../../src/outbox/destinations/http.ts'
import { stripeCalls } from '../../../src/outbox/destinations/stripe.ts'
import { callWith } from './outgoing.ts'
import { startServer, type ScriptedServer } from './scripted-server.ts'

afterEach(() => installFailpoints(null))

const kinds: readonly (readonly [string, (server: ScriptedServer) => Destination, unknown])[] = [
  ['http', ({ url, host }) => http({ url, allow: [host] }), { a: 1 }],
  [
    'stripe',
    ({ url }) => stripeCalls({ apiKey: 'sk_test_1', apiBase: url }) as Destination,
    { call: 'refunds.create', params: {} },
  ],
  [
    'function',
    ({ url }) =>
      custom({
        contract: { idempotency: 'none' },
        call: async ({ signal }) => {
          await fetch(url, { method: 'POST', signal })
        },
      }),
    { a: 1 },
  ],
]

describe.each(kinds)('the steps of a call of kind %s', (_, make, body) => {
  it('are passed in their order', async () => {
    await using server = await startServer()
    const destination = make(server)
    const steps: Step[] = []
    installFailpoints((step) => void steps.push(step))
    expect(await callWith(destination, body)).toMatchObject({ kind: 'sent' })
    expect(steps).toEqual(['D1', 'D2', 'D3', 'D4'])
    await destination.close?.()
  })

  it.each(['D1', 'D2', 'D3', 'D4'] as const)(
    'that fails at %s is told for what it is',
    async (at) => {
      await using server = await startServer()
      const destination = make(server)
      installFailpoints((step) => {
        if (step === at) throw new Error('planned')
      })
      const { kind } = await callWith(destination, body)
      expect(kind).not.toBe('refused')
      if (at === 'D1') {
        expect(server.seen).toHaveLength(0)
        expect(kind).not.toBe('sent')
      } else {
        await expect.poll(() => server.seen.length).toBe(1)
        expect(kind).not.toBe('retry')
      }
      await destination.close?.()
    },
  )
})
