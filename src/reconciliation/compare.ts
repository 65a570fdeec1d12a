/**
 * Comparison, as passes and repairs use it. It writes findings and nothing else: what it finds, a pass that
 * comes after it finds again under the same id, and what is over it closes.
 */
import { finding } from '../workflow/finding-kinds.ts'
import { accountSource, type AccountSource, type CompareContext } from './compare-context.ts'
import { compareWindow, lookAt } from './compare-window.ts'
import { escalateOverdue } from './escalate.ts'
import { judgeFinding } from './judge-finding.ts'
import { judgeFetched } from './judge.ts'
import { LocalChecks } from './local-checks/check-locally.ts'
import { checkOrders } from './local-checks/orders.ts'
import type { Comparison, ConfiguredSourceLike, WindowSeen } from './ports.ts'
import { readOnlySetup } from './preview.ts'
import { SeenWindow } from './window-seen.ts'

/** Creates the comparison of a configuration. */
export function createComparison(ctx: CompareContext): Comparison {
  const local = new LocalChecks(ctx)
  const accounts = new Map<string, AccountSource>()
  const accountOf = async (
    source: ConfiguredSourceLike,
    account: string,
  ): Promise<AccountSource> => {
    const key = `${source.name} ${account}`
    const known = accounts.get(key) ?? (await accountSource(ctx, source, account))
    if (known.sourceId !== -1) accounts.set(key, known)
    return known
  }
  return {
    newSeen: () => new SeenWindow(),
    look: (source, account, records, input) =>
      lookAt(ctx, source, account, records, { ...input, seen: own(input.seen) }),
    async missing(source, account, event, orderId = null) {
      const at = await accountOf(source, account)
      const { eventId: id, eventType: type } = event
      return {
        draft: finding('event_missing', `event:${id}`, { event: id, type, source: source.name }),
        source: at.text,
        orderId,
        eventKey: null,
        sourceId: at.sourceId,
        reference: { kind: 'event', id, account },
      }
    },
    compareWindow: (input) => compareWindow(ctx, { ...input, seen: own(input.seen) }),
    checkLocally: (input) => local.run(input),
    escalate: () => escalateOverdue(ctx),
    judgeReference: async (source, reference, fetch, settledBefore) =>
      judgeFetched(ctx, source, reference, await fetch(source, reference), settledBefore ?? null),
    judgeOrder: (orderId) =>
      ctx.db.transaction((tx) => checkOrders(ctx, tx, [orderId]), { setup: readOnlySetup }),
    judgeFinding: (id, fetch) => judgeFinding(ctx, id, fetch),
  }
}

/** Memories are made here and nowhere else. */
function own(seen: WindowSeen): SeenWindow {
  if (seen instanceof SeenWindow) return seen
  throw new TypeError('a pass compares with the memory that newSeen() made')
}
