/** Events that end the worker that decides them, and a supervisor that starts it again each time. */
import { expect } from 'vitest'
import { startDriver, type Driver, type DriverSettings } from './failpoint-process.ts'
import { createProbe, probe, probeWorkflow, until, type Probe } from './probe.ts'

/** What a deadly event does, the options of the process that it does it to, and how that ends. */
export interface Deadly {
  readonly deadly: 'exit' | 'memory' | 'loop'
  readonly nodeOptions: readonly string[]
  readonly ending: string
}

/** A supervisor: starts the worker again whenever it ends, until it is told to stop. */
function supervise(
  settings: DriverSettings,
  nodeOptions: readonly string[],
): { readonly endings: readonly string[]; stop(): Promise<void> } {
  let running = true
  let driver: Driver | undefined
  const endings: string[] = []
  const loop = (async () => {
    while (running) {
      driver = await startDriver(settings, '', nodeOptions)
      const { code, signal } = await driver.exited
      if (running) endings.push(signal ?? String(code))
    }
  })()
  return {
    endings,
    async stop() {
      running = false
      await driver?.end()
      await loop
    },
  }
}

async function stateOf(bench: Probe, id: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await bench.rows(
    `select state, attempts, last_error from webhook_inbox where event_id = $1`,
    [id],
  )
  return row
}

/** Plays one deadly event among 40 good ones to its end, and asserts all that must hold of it. */
export async function playDeadly({ deadly, nodeOptions, ending }: Deadly): Promise<void> {
  const bench = await createProbe({ workflows: [probeWorkflow()] })
  const bodies = Array.from({ length: 40 }, (_, at) => probe('pay', { order: `good-${at}` }))
  bodies.splice(20, 0, probe('pay', { id: 'evt_deadly', order: 'deadly', deadly }))
  await bench.deliver(...bodies)
  const worker = supervise(
    {
      url: bench.database.url,
      app: 'probe',
      works: true,
      loops: 1,
      watchdogMs: 700,
      limits: { workBatch: 50 },
    },
    nodeOptions,
  )
  try {
    await until(
      () => stateOf(bench, 'evt_deadly'),
      (row) => row?.['state'] === 'dead',
      60_000,
    )
    await until(
      () => bench.rows(`select 1 from orders where state = 'paid'`),
      (rows) => rows.length === 40,
      20_000,
    )
    // what came later was never held up by it
    await bench.deliver(probe('pay', { order: 'later' }))
    await until(
      () => bench.rows(`select 1 from orders where order_id = 'later' and state = 'paid'`),
      (rows) => rows.length === 1,
      20_000,
    )
  } finally {
    await worker.stop()
  }
  expect(await stateOf(bench, 'evt_deadly')).toMatchObject({
    attempts: 3,
    last_error: expect.stringContaining('ended its worker') as unknown,
  })
  expect(await bench.rows(`select kind, state from findings`)).toEqual([
    { kind: 'dead_event', state: 'open' },
  ])
  // once in the batch, and three times alone
  expect(worker.endings).toEqual(Array.from({ length: 4 }, () => ending))
  expect(
    await bench.rows(`select order_id from fulfillment_effects where effect_type = 'grant'`),
  ).toHaveLength(41)
  // a redelivery does not bring back what kills workers
  await bench.deliver({ id: 'evt_deadly', type: 'pay', order: 'deadly' })
  await bench.work()
  expect(await stateOf(bench, 'evt_deadly')).toMatchObject({ state: 'dead' })
  await bench.close()
}
