/**
 * A TCP proxy that understands PostgreSQL's protocol well enough to strike exactly at a COMMIT: before
 * the server gets it, or after the server committed and before the client learns it. What it says it
 * did, it did: "committed" is the server's own answer, never a guess.
 */
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { ProxiedConnection } from './proxied-connection.ts'
import type { CommitFaultMode, CommitRecord, Striker } from './commit-record.ts'

export type { CommitFaultMode, CommitRecord } from './commit-record.ts'

/** Which commit is struck. */
export interface CommitFault {
  readonly mode: CommitFaultMode
  /** The nth that matches, from now on and over all connections. Default 1. */
  readonly nth?: number
  /**
   * Tried on each statement of the transaction. Without it every commit counts, except autocommitted
   * statements that by their look only read; with it those count too, if they match.
   */
  readonly match?: RegExp
}

/** A fault that waits for its commit. */
export interface ArmedFault {
  /** Resolves when it has struck and the outcome is known. A commit that the server refuses is passed on, and the fault stays armed. */
  readonly struck: Promise<CommitRecord>
  disarm(): void
}

/** A running proxy. */
export interface CommitProxy {
  /** The target's URL through the proxy. */
  readonly url: string
  /** Every commit seen, in order. */
  readonly commits: readonly CommitRecord[]
  arm(fault: CommitFault): ArmedFault
  /** Milliseconds by which whatever clients send from now on is delayed. */
  setLatency(ms: number): void
  /** Cuts every connection at once. */
  cutAll(): void
  close(): Promise<void>
}

/** Starts a proxy in front of the server of `target`, a connection URL. */
export async function createCommitProxy(options: {
  target: string
  latencyMs?: number
}): Promise<CommitProxy> {
  const target = new URL(options.target)
  const strikers = new Set<Striker>()
  const connections = new Set<ProxiedConnection>()
  const commits: CommitRecord[] = []
  let latencyMs = options.latencyMs ?? 0
  let opened = 0
  const server = createServer((client) => {
    opened += 1
    const connection: ProxiedConnection = new ProxiedConnection(client, {
      number: opened,
      target: { host: target.hostname, port: Number(target.port || 5432) },
      strikers: () => strikers,
      latencyMs: () => latencyMs,
      record: (entry) => commits.push(entry),
      closed: () => connections.delete(connection),
    })
    connections.add(connection)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const cutAll = () => {
    for (const connection of [...connections]) connection.cut()
  }
  return {
    url: url.href,
    commits,
    arm: (fault) => arm(fault, strikers),
    setLatency: (ms) => (latencyMs = ms),
    cutAll,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      cutAll()
      await closed
    },
  }
}

function arm(fault: CommitFault, strikers: Set<Striker>): ArmedFault {
  let left = fault.nth ?? 1
  let resolve: (record: CommitRecord) => void = () => {}
  const struck = new Promise<CommitRecord>((done) => (resolve = done))
  const { match } = fault
  const striker: Striker = {
    wants(point) {
      const counts = match
        ? point.statements.some((statement) => statement.search(match) !== -1)
        : !point.readOnly
      if (!counts) return null
      left -= 1
      return left === 0 ? fault.mode : null
    },
    struck(record) {
      strikers.delete(striker)
      resolve(record)
    },
    missed() {
      left = 1
    },
  }
  strikers.add(striker)
  return { struck, disarm: () => void strikers.delete(striker) }
}
