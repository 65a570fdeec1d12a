/** The simulated provider alone: a call whose answer is lost, and what its log says of it. */
import { expect, test } from 'vitest'
import { openProvider } from './provider.ts'

test('a refund whose answer was lost is made once under its key', async () => {
  const { double, client, close } = await openProvider()
  const session = double.createSession({ clientReferenceId: '1001' })
  const paid = double.completeSession(session.id)
  const lost = double.fault({
    match: { method: 'POST', path: '/v1/refunds' },
    phase: 'answer',
    reset: true,
    once: true,
  })
  await client.refunds.create(
    { payment_intent: String(paid.payment_intent) },
    { idempotencyKey: 'refund-of-1001' },
  )
  expect(lost.hits).toBe(1)
  expect((await client.refunds.list()).data.length).toBe(1)
  const calls = double.log.entries('api_call').filter(({ path }) => path === '/v1/refunds')
  expect(calls.map(({ method, executed, replayed }) => [method, executed, replayed])).toEqual([
    ['POST', true, false],
    ['POST', false, true],
    ['GET', true, false],
  ])
  await close()
})
