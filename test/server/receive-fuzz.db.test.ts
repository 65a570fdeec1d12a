/**
 * Receiving under fire: for a bounded time a server over a real database is sent whatever can be sent. The seed is
 * part of every failure; `HOOKLEDGER_FUZZ_SEED` plays it again, `HOOKLEDGER_FUZZ_SECONDS` goes on for longer.
 */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { partsOf } from '../../src/hookledger.ts'
import { createLog, logSignals } from '../../src/observe/log.ts'
import { createHookledgerServer, type HookledgerServer } from '../../src/server/server.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { collect, type RawAnswer } from '../http/raw-request.ts'
import { hostileRequests, type HostileRequest } from '../support/hostile-requests.ts'
import { createProbe, probeSecret, probeWorkflow, type Probe } from '../support/probe.ts'
import { seededRandom } from '../support/seeded-random.ts'

const seconds = Number(process.env['HOOKLEDGER_FUZZ_SECONDS'] ?? 8)
const seed = Number(process.env['HOOKLEDGER_FUZZ_SEED'] ?? Date.now() % 1_000_000)
const canary = 'canary_7f3a9c_of_a_secret'
const faults: unknown[] = []
let bench: Probe
let server: HookledgerServer
let port: number
let logged = ''

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow()],
    limits: { bodyBytes: 65_536, requestTimeoutMs: 1500 },
  })
  const { hookledger } = bench
  const parts = partsOf(hookledger)
  logSignals(
    parts.signals,
    createLog({ level: 'debug', pretty: false, color: false, write: (line) => (logged += line) }),
  )
  const receiver = parts.receiver()
  server = createHookledgerServer({
    ingest: (request) => receiver.ingest(request),
    hasSource: (name) => receiver.hasSource(name),
    onRefused: (source, reason, status) => void receiver.refuse(source, reason, { status }),
    limits: parts.config.limits,
    ready: () => Promise.resolve(true),
    checkEveryMs: 100,
  })
  port = (await server.listen(0, '127.0.0.1')).port
  process.on('uncaughtExceptionMonitor', onFault)
  process.on('unhandledRejection', onFault)
})
afterAll(async () => {
  process.off('uncaughtExceptionMonitor', onFault)
  process.off('unhandledRejection', onFault)
  await server.stop(1000)
  await bench.close()
})

function onFault(error: unknown): void {
  faults.push(error)
}

async function send({ bytes, cutAt }: HostileRequest): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1')
  const answer = collect(socket, 4000)
  socket.write(cutAt === undefined ? bytes : bytes.subarray(0, cutAt))
  if (cutAt !== undefined) socket.end()
  return answer
}

describe('whatever is sent', () => {
  it(
    `is answered or refused, never by a fault of ours, and what is taken is stored as it came (seed ${seed})`,
    async () => {
      const stored = new Map<string, string>()
      const kinds = new Map<string, Set<number>>()
      const random = seededRandom(seed)
      const requests = hostileRequests({
        path: '/webhooks/probe',
        secret: probeSecret,
        canary,
        random,
      })
      const until = Date.now() + seconds * 1000
      let sent = 0
      const shoot = async (): Promise<void> => {
        while (Date.now() < until) {
          const { value } = requests.next() as { value: HostileRequest }
          const answer = await send(value)
          sent += 1
          const told = kinds.get(value.kind) ?? new Set()
          kinds.set(value.kind, told.add(answer.status))
          const allowed = answer.status < 500 || answer.status === 503
          if (!allowed)
            throw new Error(
              `${value.kind} was answered ${answer.status}: ${answer.text.slice(0, 200)}`,
            )
          if (answer.text.includes(canary))
            throw new Error(`${value.kind}: the answer has the canary`)
          if (answer.status === 200 && value.body !== null)
            stored.set(createHash('sha256').update(value.body).digest('hex'), value.kind)
          if (
            answer.status === 200 &&
            value.body === null &&
            !['chunks', 'the sender goes away'].includes(value.kind)
          )
            throw new Error(`${value.kind} was taken`)
        }
      }
      await Promise.all(Array.from({ length: 8 }, shoot))

      expect(faults).toEqual([])
      expect(sent).toBeGreaterThan(100)
      // it was no empty exercise: things were taken, and things were refused for every reason
      expect(stored.size).toBeGreaterThan(10)
      expect(kinds.size).toBeGreaterThan(10)
      const rows = await bench.rows<{ hash: string }>(
        `select distinct encode(body_sha256, 'hex') as hash from deliveries`,
      )
      const known = new Set(rows.map(({ hash }) => hash))
      expect([...stored.keys()].filter((hash) => !known.has(hash))).toEqual([])
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
      expect(logged.includes(canary)).toBe(false)
      expect(logged.includes(probeSecret)).toBe(false)
    },
    (seconds + 60) * 1000,
  )

  it('leaves a server that takes what is right, and a worker that decides all that it took', async () => {
    const body = JSON.stringify({
      id: 'evt_honest',
      object: 'event',
      type: 'pay',
      order: 'honest',
      livemode: false,
    })
    const response = await fetch(`http://127.0.0.1:${port}/webhooks/probe`, {
      method: 'POST',
      headers: signStripe(body, probeSecret),
      body,
    })
    expect(response.status).toBe(200)
    await bench.work()
    expect(await bench.rows(`select state from orders where order_id = 'honest'`)).toEqual([
      { state: 'paid' },
    ])
    const left = await bench.rows('select 1 from inbox_ready')
    expect(left).toEqual([])
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(faults).toEqual([])
  }, 120_000)
})
