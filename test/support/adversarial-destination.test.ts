import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import {
  startAdversary,
  type Act,
  type AdversarialDestination,
  type AdversaryOptions,
} from './adversarial-destination.ts'

interface Seen {
  readonly status: number | null
  readonly body: string
  readonly error: string | null
}

const open: AdversarialDestination[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})

async function start(options: AdversaryOptions = {}): Promise<AdversarialDestination> {
  const adversary = await startAdversary(options)
  open.push(adversary)
  return adversary
}

/** Posts as a dispatcher would, and gives up after a while. */
function post(url: string, key: string, body = '{"n":1}', giveUpMs = 250): Promise<Seen> {
  return new Promise((resolve) => {
    let status: number | null = null
    let text = ''
    const done = (error: string | null): void => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve({ status, body: text, error })
    }
    const timer = setTimeout(() => done('gave up'), giveUpMs)
    const outgoing = request(url, { method: 'POST', headers: { 'idempotency-key': key } })
    outgoing.on('error', (error) => done(error.message))
    outgoing.on('response', (response) => {
      status = response.statusCode ?? 0
      response.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(0, 5000)))
      response.on('end', () => done(null))
      response.on('error', (error) => done(error.message))
    })
    outgoing.end(body)
  })
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const always = (act: Act): AdversaryOptions => ({ script: () => act, lateMs: 400, dripMs: 20 })

describe('what the destination does', () => {
  it.each<[Act, number | null, 'applied' | 'none']>([
    ['works', 200, 'applied'],
    ['works_and_says_nothing', null, 'applied'],
    ['works_and_resets', null, 'applied'],
    ['works_and_answers_late', null, 'applied'],
    ['works_and_drips', 200, 'applied'],
    ['works_and_floods', 200, 'applied'],
    ['works_and_cuts_its_answer', 200, 'applied'],
    ['works_and_answers_500', 500, 'applied'],
    ['answers_500', 500, 'none'],
    ['answers_200_with_an_error', 200, 'none'],
    ['refuses', 422, 'none'],
    [{ does: 'refuses', status: 400 }, 400, 'none'],
    ['refuses_at_door', 403, 'none'],
    ['says_nothing', null, 'none'],
    ['resets', null, 'none'],
    ['talks_garbage', null, 'none'],
    ['is_busy_with_it', 409, 'none'],
    ['redirects', 307, 'none'],
    [{ does: 'asks_to_wait', status: 503, retryAfter: '3' }, 503, 'none'],
  ])('is what its log says: %j', async (act, status, work) => {
    const destination = await start(always(act))
    const seen = await post(destination.url, 'k')
    expect(seen.status).toBe(status)
    const [call] = destination.log.calls()
    expect(call).toMatchObject({ key: 'k', sha256: sha256('{"n":1}'), work })
    expect(call?.answer?.status ?? null).toBe(status)
    expect(destination.log.applications().get('k') ?? 0).toBe(work === 'applied' ? 1 : 0)
  })

  it('is done after the caller has gone, where it works late, and answers nobody', async () => {
    const destination = await start(always('works_late'))
    expect(await post(destination.url, 'k')).toMatchObject({ status: null, error: 'gave up' })
    expect(destination.log.calls()).toMatchObject([{ work: 'none' }])
    await sleep(400)
    expect(destination.log.calls()).toMatchObject([{ work: 'applied', answer: null }])
  })

  it('pours as long as somebody drinks', async () => {
    const destination = await start(always('works_and_floods'))
    await post(destination.url, 'k')
    expect(destination.flooded).toBeGreaterThan(1024 * 1024)
  })

  it('sends a redirect to where only a follower arrives', async () => {
    const destination = await start(always('redirects'))
    await post(destination.url, 'k')
    expect(destination.internalHits).toBe(0)
  })
})

describe('what the destination remembers', () => {
  it('is a key with its bytes: done once, and answered the same', async () => {
    const destination = await start()
    const first = await post(destination.url, 'k')
    expect(await post(destination.url, 'k')).toEqual(first)
    expect(await post(destination.url, 'k', '{"n":2}')).toMatchObject({ status: 422 })
    expect(destination.log.calls().map((call) => call.work)).toEqual([
      'applied',
      'replayed',
      'mismatched',
    ])
  })

  it('is forgotten when its time is over', async () => {
    let clock = 1000
    const destination = await start({ now: () => clock })
    await post(destination.url, 'k')
    clock += 24 * 3_600_000 - 1
    await post(destination.url, 'k')
    destination.moveClock(1)
    await post(destination.url, 'k')
    expect(destination.log.applications().get('k')).toBe(2)
  })

  it('is nothing where it honors no keys', async () => {
    const destination = await start({ honorsKeys: false })
    await post(destination.url, 'k')
    await post(destination.url, 'k')
    expect(destination.log.applications().get('k')).toBe(2)
  })

  it.each<[Act, number]>([
    ['answers_500', 500],
    ['works_and_answers_500', 500],
    ['refuses', 422],
    ['answers_200_with_an_error', 200],
  ])('is a failure too, where it replays them: %s', async (act, status) => {
    const destination = await start({ replaysFailures: true, script: () => act })
    const first = await post(destination.url, 'k')
    destination.script = () => 'works'
    expect(await post(destination.url, 'k')).toMatchObject({ status, error: null })
    expect(first.status).toBe(status)
    expect(await post(destination.url, 'k:2')).toMatchObject({ status: 200 })
    const worked = act === 'works_and_answers_500' ? 2 : 1
    expect(destination.log.applications().get('k')).toBe(worked)
  })

  it('is not a failure where it does not replay them', async () => {
    const destination = await start({
      script: ({ earlier }) => (earlier === 0 ? 'refuses' : 'works'),
    })
    await post(destination.url, 'k')
    expect(await post(destination.url, 'k')).toMatchObject({ status: 200 })
  })

  it('answers a lookup with the truth for ever, under every key of the operation', async () => {
    const destination = await start({ script: () => 'works_and_resets', remembersMs: 1 })
    expect((await fetch(`${destination.lookupUrl}k`)).status).toBe(404)
    await post(destination.url, 'k')
    expect((await fetch(`${destination.lookupUrl}${encodeURIComponent('k:2')}`)).status).toBe(200)
    expect(destination.log.entries.filter(({ kind }) => kind === 'looked_up')).toMatchObject([
      { means: 'not_done' },
      { means: 'done' },
    ])
  })
})
