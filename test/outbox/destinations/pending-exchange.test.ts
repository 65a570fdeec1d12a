import type { Dispatcher } from 'undici'
import { describe, expect, it } from 'vitest'
import { PendingExchange } from '../../../src/outbox/destinations/pending-exchange.ts'

/** A controller that notes whether it was told to stop. */
function controller(): {
  readonly controller: Dispatcher.DispatchController
  aborted: () => number
} {
  let aborts = 0
  const fake = { abort: () => void aborts++, pause: () => undefined, resume: () => undefined }
  return { controller: fake as unknown as Dispatcher.DispatchController, aborted: () => aborts }
}

describe('PendingExchange', () => {
  it('stops a request that would be written a second time, which leaves the first unknown', async () => {
    const pending = new PendingExchange(10)
    const { controller: one, aborted } = controller()
    pending.onRequestStart(one)
    expect(aborted()).toBe(0)
    pending.onRequestStart(one)
    expect(aborted()).toBe(1)
    expect(await pending.result).toMatchObject({ kind: 'unanswered', isWritten: true })
  })

  it('stops a request that would be written after its end', async () => {
    const pending = new PendingExchange(10)
    const { controller: one, aborted } = controller()
    pending.end()
    pending.onRequestStart(one)
    expect(aborted()).toBe(1)
    expect(await pending.result).toMatchObject({ kind: 'unanswered', isWritten: false })
  })

  it('takes no informational answer for the answer', async () => {
    const pending = new PendingExchange(10)
    const { controller: one } = controller()
    pending.onRequestStart(one)
    pending.onResponseStart(one, 103, { link: '</a>' })
    pending.onResponseStart(one, 200, { 'Content-Type': ['a', 'b'] })
    pending.onResponseData(one, Buffer.from('done'))
    pending.onResponseEnd()
    pending.onResponseError(one, new Error('late'))
    expect(await pending.result).toEqual({
      kind: 'answered',
      status: 200,
      headers: { 'content-type': 'a' },
      body: Buffer.from('done'),
      end: 'complete',
    })
  })

  it('reads exactly as much as it may, over many pieces', async () => {
    const pending = new PendingExchange(5)
    const { controller: one } = controller()
    pending.onRequestStart(one)
    pending.onResponseStart(one, 200, {})
    for (const piece of ['ab', 'cd', 'ef', 'gh']) pending.onResponseData(one, Buffer.from(piece))
    expect(await pending.result).toMatchObject({ body: Buffer.from('abcde'), end: 'cut' })
  })

  it('takes an answer of exactly the most as whole', async () => {
    const pending = new PendingExchange(4)
    const { controller: one } = controller()
    pending.onRequestStart(one)
    pending.onResponseStart(one, 200, {})
    pending.onResponseData(one, Buffer.from('abcd'))
    expect(pending.isOver).toBe(false)
    pending.onResponseEnd()
    expect(await pending.result).toMatchObject({ end: 'complete' })
  })
})
