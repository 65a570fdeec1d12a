/**
 * One role of the product in a process of its own, that a drill may kill at any step. It does what the server and the
 * worker process do, with the same parts, over and over: each case has a product of its own on a database of its own.
 */
import { createHookledger, partsOf, type Hookledger } from '../hookledger.ts'
import { createHookledgerServer, type HookledgerServer } from '../server/server.ts'
import { installFaultPlan, parseFaultPlan, type InstalledFaults } from '../testing/fault-plan.ts'
import type { Step } from '../core/failpoints.ts'
import { money } from '../core/money.ts'
import { drilledOptions } from './drilled-options.ts'
import { drillConfigOf, type DrillConfig } from './drill-config.ts'
import type { AppActs, ChildOrder, ChildReport, DrillRole, DrillWorld } from './messages.ts'
import { checkInMemory } from './pure/check-in-memory.ts'

/** How long what is in hand may take at the end of a case, in milliseconds. */
const stopMs = 3000

const steps: readonly Step[] = [
  ...count('R', 10),
  ...count('W', 7),
  ...count('D', 6),
  ...count('G', 7),
  ...count('C', 7),
]

function count(letter: string, last: number): Step[] {
  return Array.from({ length: last + 1 }, (_, at) => `${letter}${at}` as Step)
}

/** How a child speaks to its drill. */
export interface ChildLine {
  send(report: ChildReport): void
  onOrder(take: (order: ChildOrder) => void): void
}

/** What a child is made of: the user's configuration, loaded in this process. */
export interface ChildConfig {
  readonly hookledger: Hookledger
  readonly drill: unknown
}

/** Obeys until the line is closed. */
export function runDrillChild(loaded: ChildConfig, world: DrillWorld, line: ChildLine): void {
  const child = new DrillChild(loaded.hookledger, drillConfigOf(loaded.drill), world, line)
  let last: Promise<void> = Promise.resolve()
  line.onOrder((order) => {
    if (order.kind === 'wake') return child.wake()
    last = last.then(() => child.obey(order)).catch((error: unknown) => line.send(failureOf(error)))
  })
  line.send({ kind: 'ready' })
}

function failureOf(error: unknown): ChildReport {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  return { kind: 'failed', code: String(code ?? 'error'), message: String(message ?? error) }
}

class DrillChild {
  readonly #user: Hookledger
  readonly #drill: DrillConfig
  readonly #world: DrillWorld
  readonly #line: ChildLine
  #product: Hookledger | undefined
  #server: HookledgerServer | undefined
  #faults: InstalledFaults | undefined
  #running: { wake(): void; stop(timeoutMs: number): Promise<unknown> }[] = []

  constructor(user: Hookledger, drill: DrillConfig, world: DrillWorld, line: ChildLine) {
    this.#user = user
    this.#drill = drill
    this.#world = world
    this.#line = line
  }

  wake(): void {
    for (const each of this.#running) each.wake()
  }

  async obey(order: ChildOrder): Promise<void> {
    switch (order.kind) {
      case 'open':
        return this.#line.send({ kind: 'opened', port: await this.#open(order.role, order.plan) })
      case 'act':
        await this.#act(order.acts)
        return this.#line.send({ kind: 'done' })
      case 'reconcile':
        await this.#reconcile()
        return this.#line.send({ kind: 'done' })
      case 'check': {
        const { config } = partsOf(this.#user)
        const report = await checkInMemory(config.workflows, order)
        return this.#line.send({ kind: 'checked', report })
      }
      case 'close':
        return this.#line.send({ kind: 'closed', reached: await this.#close() })
      case 'wake':
        return
    }
  }

  async #open(role: DrillRole, plan: string): Promise<number> {
    await this.#close()
    this.#faults = installFaultPlan(plan === '' ? [] : parseFaultPlan(plan), {
      databasePort: Number(new URL(this.#world.databaseUrl).port),
      told: ({ step, action }) => this.#line.send({ kind: 'fault', step, action }),
    })
    const { options, config } = partsOf(this.#user)
    const product = createHookledger(drilledOptions(options, config, this.#drill, this.#world))
    this.#product = product
    await this.#requireScratch(product)
    switch (role) {
      case 'receive':
        return this.#receive(product)
      case 'work':
        await this.#work(product, plan)
        return 0
      case 'dispatch':
        await this.#dispatch(product)
        return 0
      case 'reconcile':
        await partsOf(product).register()
        return 0
    }
  }

  /** Nothing is written before the database is known to be the drill's own. */
  async #requireScratch(product: Hookledger): Promise<void> {
    const [row] = await partsOf(product).database().query<{ mark: string | null }>({
      text: `select shobj_description(oid, 'pg_database') as mark from pg_database where datname = current_database()`,
    })
    if (row?.mark !== this.#world.mark)
      throw new Error(
        'the configuration has a pool of its own that does not lead to DATABASE_URL: a drill writes into no other database',
      )
  }

  async #receive(product: Hookledger): Promise<number> {
    const { signals, registration } = partsOf(product)
    await registration.check()
    signals.on('inbox.events.stored', () => this.#line.send({ kind: 'wake', role: 'work' }))
    const take = this.#drill.ingest
    this.#server = createHookledgerServer({
      // the app's own way of taking a delivery decides on the status alone
      ingest: (request) =>
        take === undefined ? product.ingest(request) : (take(product, request) as never),
      limits: product.limits,
      ready: () => Promise.resolve(true),
    })
    return (await this.#server.listen(0, '127.0.0.1')).port
  }

  async #work(product: Hookledger, plan: string): Promise<void> {
    const parts = partsOf(product)
    await parts.register()
    parts.signals.on('outbox.operations.recorded', () =>
      this.#line.send({ kind: 'wake', role: 'dispatch' }),
    )
    // of two loops the one that claims nothing may reach a step first, where there is nothing to lose
    const worker = await parts.worker({ loops: plan === '' ? 2 : 1 })
    await worker.start()
    this.#running.push(worker)
    if (!parts.asksProviders) return
    const gatherer = await parts.gatherer()
    gatherer.start()
    this.#running.push(gatherer)
  }

  async #dispatch(product: Hookledger): Promise<void> {
    const parts = partsOf(product)
    await parts.register()
    parts.signals.on('outbox.events.woken', () => this.#line.send({ kind: 'wake', role: 'work' }))
    const dispatcher = await parts.dispatcher()
    dispatcher.start()
    this.#running.push(dispatcher)
  }

  async #act({ open, customers, source }: AppActs): Promise<void> {
    const product = this.#product
    if (product === undefined) throw new Error('nothing is open')
    await partsOf(product)
      .database()
      .transaction(async (tx) => {
        const client = {
          query: async (text: string, values: unknown[] = []) => {
            const { rows, rowCount } = await tx.execute({ text, values: values as never })
            return { rows: rows as unknown[], rowCount }
          },
        }
        if (open !== null)
          await product.openOrder(client, {
            workflow: open.workflow,
            id: open.id,
            subject: open.subject,
            ...(open.expected !== null && {
              expected: money(BigInt(open.expected.amount), open.expected.currency),
            }),
          })
        for (const [customer, subject] of Object.entries(customers))
          await product.linkCustomer(client, {
            source,
            customer,
            subject,
            reason: 'drill',
            actor: 'drill',
          })
      })
  }

  async #reconcile(): Promise<void> {
    if (this.#product === undefined) throw new Error('nothing is open')
    const parts = partsOf(this.#product)
    const reconciler = await parts.reconciler()
    reconciler.start()
    this.#running.push({ wake: () => {}, stop: (timeoutMs) => reconciler.stop(timeoutMs) })
  }

  async #close(): Promise<string[]> {
    const reached = steps.filter((step) => (this.#faults?.reached(step) ?? 0) > 0)
    await this.#server?.stop(stopMs)
    await Promise.all(this.#running.map((each) => each.stop(stopMs)))
    if (this.#product !== undefined) await partsOf(this.#product).close()
    this.#faults?.uninstall()
    this.#faults = undefined
    this.#server = undefined
    this.#product = undefined
    this.#running = []
    return reached
  }
}
