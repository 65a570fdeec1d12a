import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Step } from '../../src/core/failpoints.ts'
import { sendRaw } from '../http/raw-request.ts'
import type { ReceiverBench } from '../inbox/receiver-bench.ts'
import {
  createReceiverBench,
  eventBody,
  secret,
  signed,
  storedEvents,
} from '../inbox/receiver-bench.ts'

let bench: ReceiverBench
const children: ChildProcess[] = []

beforeAll(async () => {
  bench = await createReceiverBench()
  await bench.receiver.ingest(signed(eventBody('evt_warm')))
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

afterAll(() => bench.close())

/** Starts the server that kills itself at a step; resolves with its port and with its end. */
async function start(
  step: Step,
  delayMs: number,
): Promise<{ port: number; ended: Promise<unknown> }> {
  const program = fileURLToPath(new URL('failing-server.ts', import.meta.url))
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', program, bench.database.url, step, String(delayMs), secret],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  children.push(child)
  const ended = once(child, 'exit')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { port: Number(line.toString()), ended }
}

function request(eventId: string): Buffer {
  const { headers, rawBody } = signed(eventBody(eventId))
  const lines = Object.entries(headers as Record<string, string>).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = `POST /webhooks/stripe HTTP/1.1\r\nHost: a\r\nContent-Length: ${rawBody.byteLength}\r\n`
  return Buffer.concat([Buffer.from(`${head}${lines.join('')}\r\n`), rawBody])
}

async function isStored(eventId: string): Promise<boolean> {
  const rows = await bench.rows(
    `select 1 from hookledger.inbox_events e join hookledger.payloads using (event_key)
     join hookledger.inbox_ready using (event_key)
     where event_id = $1 and exists (select from hookledger.deliveries d where d.source_id = e.source_id and d.event_id = e.event_id)`,
    [eventId],
  )
  return rows.length === 1
}

describe('a receiver that is killed', () => {
  it.each<{ step: Step; delayMs: number; stored: boolean; answered: boolean | 'maybe' }>([
    { step: 'R0', delayMs: 0, stored: false, answered: false },
    { step: 'R1', delayMs: 0, stored: false, answered: false },
    { step: 'R2', delayMs: 0, stored: false, answered: false },
    { step: 'R3', delayMs: 0, stored: false, answered: false },
    { step: 'R4', delayMs: 0, stored: false, answered: false },
    { step: 'R5', delayMs: 0, stored: false, answered: false },
    { step: 'R6', delayMs: 0, stored: false, answered: false },
    { step: 'R7', delayMs: 500, stored: true, answered: false },
    { step: 'R8', delayMs: 0, stored: true, answered: false },
    { step: 'R9', delayMs: 0, stored: true, answered: 'maybe' },
    { step: 'R10', delayMs: 0, stored: true, answered: 'maybe' },
  ])(
    'at $step has acknowledged only what is stored, and the next delivery finds it once',
    async (expected) => {
      const id = `evt_${expected.step}`
      const { port, ended } = await start(expected.step, expected.delayMs)
      const { status } = await sendRaw(port, request(id))
      await ended
      if (expected.answered !== 'maybe') expect(status).toBe(0)
      expect(await isStored(id)).toBe(expected.stored)
      if (status === 200) expect(expected.stored).toBe(true)
      const again = storedEvents(await bench.receiver.ingest(signed(eventBody(id))))
      expect(again).toMatchObject([{ eventId: id, duplicate: expected.stored }])
      expect(await isStored(id)).toBe(true)
    },
  )
})
