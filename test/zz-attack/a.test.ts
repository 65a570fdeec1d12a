import { it } from 'vitest'
import { play, refundCreated, refundUpdated, refundFailed, checkoutSessionCompleted, paymentIntentSucceeded, chargeDisputeCreated, chargeDisputeClosed, checkoutSessionExpired, invoicePaid } from 'hookledger/testing'
import { license } from '../../examples/shop/license.ts'
import { credits } from '../../examples/shop/credits.ts'

function perms<T>(a: T[]): T[][] { if (a.length < 2) return [a]; return a.flatMap((x, i) => perms([...a.slice(0, i), ...a.slice(i + 1)]).map((r) => [x, ...r])) }
function run(title: string, events: any[], opts: { open?: any, split?: boolean } = {}) {
  const ends = new Map<string, string>()
  for (const p of perms(events.map((_, i) => i))) for (const mode of ['each', 'batch']) {
    const app = play([license, credits])
    if (opts.open) app.open({ workflow: 'license', ...opts.open })
    if (mode === 'each') for (const i of p) app.deliver(events[i]); else app.deliver(p.map((i) => events[i]))
    const o = app.orders().map((x: any) => `${x.id}:${x.state}:${x.entitlements.filter((e: any) => e.active).map((e: any) => e.subject)}:${x.effects.map((e: any) => e.type + (e.reversed ? '!' : '')).sort()}`).join(' | ')
    const f = app.findings().map((x: any) => x.kind).sort().join(',')
    const ib = app.inbox().map((x: any) => x.state).sort().join(',')
    const k = `${o} ## ${f} ## ${ib}`
    ends.set(k, (ends.get(k) ?? `${mode} ${p.join('')}`))
  }
  console.log(`--- ${title}: ${ends.size} end(s)`)
  for (const [k, v] of ends) console.log(`   [${v}] ${k}`)
}
const a1 = { order: 'o', attempt: 1 }, a2 = { order: 'o', attempt: 2 }
it('x', () => {
  run('refund A ok, A fails, B ok', [checkoutSessionCompleted(a1), refundCreated({ ...a1, id: 're_a' }), refundFailed({ ...a1, id: 're_a' }), refundCreated({ ...a1, id: 're_b' })])
  run('refund pending→succeeded→failed', [checkoutSessionCompleted(a1), refundCreated({ ...a1, id: 're_a', status: 'pending' } as any), refundUpdated({ ...a1, id: 're_a' }), refundFailed({ ...a1, id: 're_a' })])
  run('over refund', [checkoutSessionCompleted(a1), refundCreated({ ...a1, id: 're_a', amount: 4000 }), refundCreated({ ...a1, id: 're_b', amount: 4000 })])
  run('paid twice both refunded', [checkoutSessionCompleted(a1), checkoutSessionCompleted(a2), refundCreated({ ...a1, id: 're_a' }), refundCreated({ ...a2, id: 're_b' })])
  run('second underpaid, its dispute lost', [checkoutSessionCompleted(a1), checkoutSessionCompleted({ ...a2, amount: 1000 } as any), chargeDisputeCreated({ ...a2, id: 'du' }), chargeDisputeClosed({ ...a2, id: 'du', status: 'lost' })])
  run('second underpaid, refunded', [checkoutSessionCompleted(a1), checkoutSessionCompleted({ ...a2, amount: 1000 } as any), refundCreated({ ...a2, id: 'r', amount: 1000 })])
  run('dispute then refund, lost', [checkoutSessionCompleted(a1), chargeDisputeCreated({ ...a1, id: 'du' }), refundCreated({ ...a1, id: 're_b' }), chargeDisputeClosed({ ...a1, id: 'du', status: 'won' })])
  run('expired after paid', [checkoutSessionCompleted(a1), checkoutSessionExpired({ ...a2 }), paymentIntentSucceeded(a1)])
  run('free', [checkoutSessionCompleted({ ...a1, amount: 0, paymentStatus: 'no_payment_required', paymentIntent: null } as any)])
  run('free with expected', [checkoutSessionCompleted({ ...a1, amount: 0, paymentStatus: 'no_payment_required', paymentIntent: null } as any)], { open: { id: 'o', subject: 'user:1', expected: { amount: 4900n, currency: 'USD' } } })
  run('mode subscription', [checkoutSessionCompleted({ ...a1, mode: 'subscription' } as any)])
  const conflict = JSON.parse(JSON.stringify(checkoutSessionCompleted(a1))); conflict.data.object.metadata = { order_id: 'other' }
  run('metadata conflict', [conflict, paymentIntentSucceeded(a1)])
  for (const amt of [-1, 0, 2 ** 53 + 2, '4900', 4900.5, null, 1e308]) { const e = JSON.parse(JSON.stringify(checkoutSessionCompleted(a1))); e.data.object.amount_total = amt; run('amount ' + amt, [e]) }
  for (const c of ['EUR', 'usd', 'US', null, 'jpy']) { const e = JSON.parse(JSON.stringify(checkoutSessionCompleted(a1))); e.data.object.currency = c; run('currency ' + c, [e]) }
  run('invoices', [invoicePaid({ id: 'in_1', subscription: 'sub_1', metadata: { account_id: 'a' }, amount: 2000 } as any), invoicePaid({ id: 'in_1', subscription: 'sub_1', metadata: { account_id: 'a' }, amount: 2000, eventId: 'evt_other' } as any)])
  const app = play([license, credits])
  app.deliver(checkoutSessionCompleted(a1)); console.log(app.open({ workflow: 'license', id: 'o', subject: 'user:42', expected: { amount: 4900n, currency: 'USD' } }), app.order('o').subject, app.order('o').entitlements, app.findings())
  const two = play([license, credits])
  const other = JSON.parse(JSON.stringify(checkoutSessionCompleted({ ...a1 , eventId: 'evt_x'}))); other.data.object.client_reference_id = 'p'; other.data.object.metadata = {}
  console.log(two.deliver([checkoutSessionCompleted(a1), other]).map((x: any) => x.state + x.reason))
  const two2 = play([license, credits]); two2.deliver(checkoutSessionCompleted(a1)); console.log(two2.deliver(other).map((x: any) => x.state + x.reason))
})
