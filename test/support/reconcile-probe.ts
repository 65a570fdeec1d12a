/** A probe whose provider can be asked for its records, and passes over them. */
import { stripe } from 'hookledger'
import type { Reconciler } from '../../src/compose/reconciliation.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { PassOptions, RunReport } from '../../src/reconciliation/pass-report.ts'
import type { ReconcileSettings } from '../../src/reconciliation/settings.ts'
import {
  createProbe,
  probeSecret,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
  type ProbeShape,
} from './probe.ts'
import { scriptedRecords, type ScriptedOptions, type ScriptedRecords } from './scripted-records.ts'

/** The probe of a test of reconciliation. */
export interface ReconcileProbe extends Probe {
  readonly records: ScriptedRecords
  readonly reconciler: Reconciler
  /** One pass over the only source, and its run. */
  pass(options?: Partial<PassOptions>): Promise<RunReport>
  /** Another reconciler over the same database and provider. */
  other(settings?: Partial<ReconcileSettings>): Promise<Reconciler>
}

/** What differs from the usual. */
export interface ReconcileProbeOptions extends ScriptedOptions {
  readonly settings?: Partial<ReconcileSettings>
  readonly hooks?: ProbeHooks
  readonly shape?: ProbeShape
  /** How long ago it was installed, in milliseconds; ten days. */
  readonly installedAgoMs?: number
  readonly connect?: readonly string[]
  /** Events are decided by the pass itself unless this is false. */
  readonly decides?: boolean
}

const day = 86_400_000

/** Creates it; provider and database are on one clock, and nothing is too recent to be looked at. */
export async function createReconcileProbe(
  options: ReconcileProbeOptions = {},
): Promise<ReconcileProbe> {
  const records = scriptedRecords(options)
  const source = Object.freeze({
    ...stripe({
      account: 'acct_1',
      environment: 'test',
      signingSecrets: [probeSecret],
      ...(options.connect && { connect: options.connect }),
    }),
    records,
  })
  const settings = { lagMs: 0, callsPerSecond: 10_000, settleMs: 5000, ...options.settings }
  const probe = await createProbe({
    workflows: [probeWorkflow(options.hooks ?? {}, options.shape ?? {})],
    sources: { probe: source },
    reconcile: settings,
  })
  const agoMs = options.installedAgoMs ?? 10 * day
  await probe.rows(
    `update installation set created_at = now() - $1::double precision * interval '1 millisecond'`,
    [agoMs],
  )
  const decides = options.decides !== false
  const reconciler = await partsOf(probe.hookledger).reconciler({ decides })
  return {
    ...probe,
    records,
    reconciler,
    async pass(more = {}) {
      const { runs } = await reconciler.pass({ how: 'manual', actor: 'test', ...more })
      const [run] = runs
      if (run === undefined) throw new Error('there was no run')
      return run
    },
    async other(own = {}) {
      const another = probe.another({ reconcile: { ...settings, ...own } })
      return partsOf(another).reconciler({ decides })
    },
  }
}

/** A checkpoint as the database has it, times in milliseconds. */
export interface CheckpointSeen {
  readonly through: number
  readonly inWork: boolean
  readonly version: number
}

/** The checkpoint of a kind. */
export async function checkpointOf(
  { rows }: Pick<Probe, 'rows'>,
  kind = 'event',
): Promise<CheckpointSeen> {
  const [row] = await rows<{ through: Date; window_from: Date | null; version: string }>(
    `select through, window_from, version from reconciliation_checkpoints where kind = $1`,
    [kind],
  )
  if (row === undefined) throw new Error(`no checkpoint of ${kind}`)
  return {
    through: row.through.getTime(),
    inWork: row.window_from !== null,
    version: Number(row.version),
  }
}

/** Ids of stored events with the door that they came through, by id. */
export async function doors({ rows }: Pick<Probe, 'rows'>): Promise<Record<string, string>> {
  const found = await rows<{ event_id: string; via: string }>(
    `select event_id, via from inbox_events order by event_id`,
  )
  return Object.fromEntries(found.map((row) => [row.event_id, row.via]))
}
