import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runBatch, type RunReport } from '../../src/inbox/run-batch.ts'
import type { WorkContext } from '../../src/inbox/work-batch.ts'
import { partsOf } from '../../src/hookledger.ts'
import { stripeApiVersion } from '../../src/testing/stripe-events.ts'
import {
  clearHooks,
  createProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let bench: Probe
let work: WorkContext
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)] })
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
  work = await newProcess()
})

/** What a process remembers begins anew. */
const newProcess = async (): Promise<WorkContext> =>
  (await partsOf(bench.hookledger).contexts()).work

let made = 0
/** So many events that this version shaped, delivered and decided in one batch. */
async function deliver(version: string | null, events = 1, type = 'note'): Promise<RunReport> {
  const bodies = Array.from({ length: events }, () => {
    made += 1
    return probe(type, {
      id: `evt_v${made}`,
      object: 'event',
      order: `v${made % 3}`,
      api_version: version,
    })
  })
  await bench.deliver(...bodies)
  return runBatch(work, { kind: 'next', after: 0n, limit: 500 })
}

const findings = (): Promise<unknown[]> =>
  bench.rows(`select evidence ->> 'version' as version, evidence ->> 'expected' as expected, state,
    times_seen::int as seen, severity from findings where kind = 'api_version_differs' order by 1`)

describe('events of another version of the API', () => {
  it('are decided like the others, and told once for each version', async () => {
    for (const events of [3, 1, 5]) {
      const { settled } = await deliver('2019-02-11', events)
      expect(settled.map(({ outcome }) => outcome.kind)).not.toContain('dead')
      expect(settled).toHaveLength(events)
    }
    const one = { expected: stripeApiVersion, state: 'open', seen: 1, severity: 'low' }
    expect(await findings()).toEqual([{ version: '2019-02-11', ...one }])
    await deliver('2025-03-31.basil')
    await deliver('2019-02-11')
    expect(await findings()).toEqual([
      { version: '2019-02-11', ...one },
      { version: '2025-03-31.basil', ...one },
    ])
  })

  it('say nothing where the version is the one, there is none, or nothing handles them', async () => {
    await deliver(stripeApiVersion)
    await deliver(null)
    await deliver('2019-02-11', 1, 'nobody.handles')
    expect(await findings()).toEqual([])
  })

  it('are told by the next process too, as the same finding; a dismissed one stays so', async () => {
    await deliver('2019-02-11')
    await bench.rows(
      `update findings set state = 'dismissed', dismissed_evidence = evidence, dismissed_until = now() + interval '1 year'
       where kind = 'api_version_differs'`,
    )
    work = await newProcess()
    await deliver('2019-02-11')
    expect(await findings()).toMatchObject([{ state: 'dismissed', seen: 2 }])
  })

  it('a batch that did not commit has told nothing', async () => {
    hooks.apply = () => Promise.reject(new Error('not now'))
    await deliver('2019-02-11')
    expect(await findings()).toEqual([])
    delete hooks.apply
    await deliver('2019-02-11')
    expect(await findings()).toMatchObject([{ version: '2019-02-11', seen: 1 }])
  })
})
