/**
 * What Stripe's objects claim about money. A payment bears the id of its payment intent where it has one;
 * charge, session and invoice are other names of the same money.
 */
import type { Fact, PaymentFact, ProviderRecord, RecordReference } from '../../workflow/records.ts'
import { amountOf, idIn, recordIn, recordsIn, textIn, type Json } from './json-fields.ts'
import { kindOfId } from './stripe-kinds.ts'

/** The facts of a record; none for an event, which tells of a moment and not of now. */
export function factsOfStripe(record: ProviderRecord): readonly Fact[] {
  const { object, account } = record
  switch (record.kind) {
    case 'payment_intent':
      return [intentFact(object, account)]
    case 'charge':
      return [chargeFact(object)]
    case 'checkout.session':
      return sessionFacts(object, account)
    case 'invoice':
      return invoiceFacts(object)
    case 'refund':
      return [
        {
          fact: 'refund',
          id: record.id,
          payment: idIn(object, 'payment_intent') ?? idIn(object, 'charge'),
          standing: refundStanding(object),
          ...moneyOf(object, 'amount'),
        },
      ]
    case 'dispute':
      return [
        {
          fact: 'dispute',
          id: record.id,
          payment: idIn(object, 'payment_intent') ?? idIn(object, 'charge'),
          standing: disputeStanding(object),
        },
      ]
    default:
      return []
  }
}

function intentFact(intent: Json, account: string): PaymentFact {
  const status = textIn(intent, 'status')
  const charge = chargeOf(intent)
  const invoice = invoiceOf(intent)
  const judgedBy: RecordReference | undefined =
    invoice === null ? undefined : { kind: 'invoice', id: invoice, account }
  return {
    fact: 'payment',
    id: textIn(intent, 'id') ?? '',
    aliases: present([textIn(charge ?? {}, 'id') ?? idIn(intent, 'latest_charge'), invoice]),
    ...(judgedBy !== undefined && { judgedBy }),
    standing: status === 'succeeded' ? 'paid' : status === 'canceled' ? 'failed' : 'unpaid',
    ...moneyOf(intent, status === 'succeeded' ? 'amount_received' : 'amount'),
    refunded: charge === null ? 0n : refundedOf(charge),
  }
}

/** The charge that paid an intent, where the answer has it whole; older versions list all that were tried. */
export function chargeOf(intent: Json): Json | null {
  const tried = recordsIn(recordIn(intent, 'charges') ?? {}, 'data')
  return recordIn(intent, 'latest_charge') ?? tried[0] ?? null
}

/** Older versions name the invoice on top, newer ones as the reference of what is paid. */
function invoiceOf(intent: Json): string | null {
  const named =
    idIn(intent, 'invoice') ?? textIn(recordIn(intent, 'payment_details') ?? {}, 'order_reference')
  return named !== null && kindOfId(named) === 'invoice' ? named : null
}

function chargeFact(charge: Json): PaymentFact {
  const id = textIn(charge, 'id') ?? ''
  const intent = idIn(charge, 'payment_intent')
  const isCaptured = charge['captured'] === true && textIn(charge, 'status') === 'succeeded'
  // the intent of a charge that failed may still be paid by another one
  const isOver = textIn(charge, 'status') === 'failed' && intent === null
  return {
    fact: 'payment',
    id: intent ?? id,
    aliases: present([id, idIn(charge, 'invoice')]),
    standing: isCaptured ? 'paid' : isOver ? 'failed' : 'unpaid',
    ...moneyOf(charge, isCaptured ? 'amount_captured' : 'amount'),
    refunded: refundedOf(charge),
  }
}

function sessionFacts(session: Json, account: string): readonly Fact[] {
  const id = textIn(session, 'id') ?? ''
  const mode = textIn(session, 'mode')
  if (mode === 'setup') return []
  const intent = recordIn(session, 'payment_intent')
  if (intent !== null) {
    const fact = intentFact(intent, account)
    return [{ ...fact, aliases: [...(fact.aliases ?? []), id] }]
  }
  const of = idIn(session, 'payment_intent') ?? idIn(session, 'invoice')
  const status = textIn(session, 'status')
  const paid = ['paid', 'no_payment_required'].includes(textIn(session, 'payment_status') ?? '')
  return [
    {
      fact: 'payment',
      id: of ?? id,
      ...(of !== null && { aliases: [id] }),
      standing: status === 'complete' && paid ? 'paid' : status === 'expired' ? 'failed' : 'unpaid',
      ...moneyOf(session, 'amount_total'),
      refunded: 0n,
    },
  ]
}

function invoiceFacts(invoice: Json): readonly Fact[] {
  const status = textIn(invoice, 'status')
  const intents = recordsIn(recordIn(invoice, 'payments') ?? {}, 'data').map((payment) =>
    idIn(recordIn(payment, 'payment') ?? {}, 'payment_intent'),
  )
  return [
    {
      fact: 'payment',
      id: textIn(invoice, 'id') ?? '',
      aliases: present([idIn(invoice, 'payment_intent'), idIn(invoice, 'charge'), ...intents]),
      standing: status === 'paid' ? 'paid' : status === 'void' ? 'failed' : 'unpaid',
      ...moneyOf(invoice, status === 'paid' ? 'amount_paid' : 'amount_due'),
      refunded: 0n,
    },
  ]
}

/** What was given back for good: a pending refund may still fail. */
function refundedOf(charge: Json): bigint {
  const whole = amountOf(charge, 'amount_refunded')
  const listed = recordsIn(recordIn(charge, 'refunds') ?? {}, 'data')
  const pending = listed
    .filter((refund) => refundStanding(refund) === 'pending')
    .reduce((sum, refund) => sum + amountOf(refund, 'amount'), 0n)
  return whole > pending ? whole - pending : 0n
}

function refundStanding(refund: Json): 'pending' | 'succeeded' | 'failed' {
  const status = textIn(refund, 'status')
  if (status === 'succeeded') return 'succeeded'
  return status === 'failed' || status === 'canceled' ? 'failed' : 'pending'
}

function disputeStanding(dispute: Json): 'open' | 'won' | 'lost' {
  const status = textIn(dispute, 'status')
  if (status === 'lost') return 'lost'
  return status === 'won' || status === 'warning_closed' || status === 'prevented' ? 'won' : 'open'
}

function moneyOf(object: Json, field: string): { amount: bigint; currency: string } {
  return {
    amount: amountOf(object, field),
    currency: (textIn(object, 'currency') ?? '').toUpperCase(),
  }
}

function present(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))]
}
