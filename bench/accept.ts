/**
 * `accept`: signed Stripe events over 64 connections, each answered 200 when it is durably stored;
 * against the usual Express handler, and against the same server without a database. What the server does
 * with nothing but the signature is shown beside them.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { AcceptKind } from './accept-servers.ts'
import { bodyBytes, checkoutEvents } from './checkout-events.ts'
import { poolSize } from './contest.ts'
import { median, rounded } from './figures.ts'
import { requestBytes, sendAll } from './raw-client.ts'
import type { BenchContext, Report } from './report.ts'
import { dropSchemas, settle } from './server.ts'

const connections = 64
const kinds: readonly AcceptKind[] = [
  'hookledger',
  'express_handler',
  'no_database',
  'signature_only',
]

/** Runs the comparison. */
export async function benchAccept({ server, options, log }: BenchContext): Promise<Report> {
  const rates = new Map<AcceptKind, number[]>(kinds.map((kind) => [kind, []]))
  for (let round = 0; round < options.rounds; round++) {
    const turned = kinds.map((_, index) => kinds[(index + round) % kinds.length])
    for (const kind of turned) {
      if (kind === undefined) continue
      const rate = await runRound(
        server.url,
        kind,
        `${kind}_${process.pid}_${round}`,
        options.events,
      )
      rates.get(kind)?.push(rate)
      log(`round ${round + 1}: ${kind} ${Math.round(rate)} requests/s`)
    }
  }
  const ratio = (other: AcceptKind): number =>
    rounded(
      median(
        (rates.get('hookledger') ?? []).map(
          (rate, index) => rate / (rates.get(other)?.[index] ?? Number.NaN),
        ),
      ),
    )
  return {
    bench: 'accept',
    unit: 'requests/s',
    conditions: {
      connections: String(connections),
      pool: String(poolSize),
      body: `${bodyBytes} bytes, signed`,
    },
    results: kinds.map((name) => {
      const rounds = (rates.get(name) ?? []).map(Math.round)
      return { name, rounds, median: median(rounds) }
    }),
    ratios: {
      vs_handler: ratio('express_handler'),
      vs_no_database: ratio('no_database'),
      vs_signature_only: ratio('signature_only'),
    },
    floors: { vs_handler: 4, vs_no_database: 0.5 },
  }
}

async function runRound(
  url: string,
  kind: AcceptKind,
  schema: string,
  events: number,
): Promise<number> {
  const requests = checkoutEvents(schema, events).map(requestBytes)
  const warmUp = checkoutEvents(`${schema}_warm`, Math.ceil(events / 4)).map(requestBytes)
  const child = fork(
    fileURLToPath(new URL('accept-child.js', import.meta.url)),
    [kind, url, schema, String(poolSize)],
    { execArgv: process.execArgv },
  )
  try {
    const port = await portOf(child)
    await sendAll(port, warmUp, connections)
    await settle(url)
    const startedAt = performance.now()
    await sendAll(port, requests, connections)
    return events / ((performance.now() - startedAt) / 1000)
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    if (child.connected) child.disconnect()
    await ended
    await dropSchemas(url, [schema])
  }
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port))
    child.once('exit', () => reject(new Error('a server ended before it listened')))
  })
}
