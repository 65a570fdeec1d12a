/**
 * `hookledger send stripe TYPE --order ID`: a signed delivery to a running `dev`, or to a URL. The same
 * options make the same event: sent again, it is a duplicate.
 */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { signStripe } from '../testing/sign.ts'
import * as factories from '../testing/stripe-events.ts'
import { command, usageError } from './command.ts'
import { developmentSecret, findRunningDev } from './dev-file.ts'
import { plural } from './table.ts'

/** What every factory takes. */
interface EventOptions {
  readonly order?: string
  readonly amount?: number
  readonly currency?: string
  readonly email?: string
  readonly eventId?: string
}

const stripeEvents: Readonly<Record<string, (options: EventOptions) => object>> = {
  'checkout.session.completed': factories.checkoutSessionCompleted,
  'checkout.session.async_payment_succeeded': factories.checkoutSessionAsyncPaymentSucceeded,
  'checkout.session.expired': factories.checkoutSessionExpired,
  'payment_intent.succeeded': factories.paymentIntentSucceeded,
  'refund.created': factories.refundCreated,
  'refund.updated': factories.refundUpdated,
  'refund.failed': factories.refundFailed,
  'charge.refunded': factories.chargeRefunded,
  'charge.dispute.created': factories.chargeDisputeCreated,
  'charge.dispute.closed': factories.chargeDisputeClosed,
  'invoice.paid': factories.invoicePaid,
  'customer.updated': factories.customerUpdated,
}

const mostTimes = 10_000
const requestMs = 15_000

interface SendReport {
  readonly url: string
  readonly event_id: string
  readonly event_type: string
  readonly sent: number
  readonly accepted: number
  /** Statuses other than 2xx, and how often. */
  readonly refused: Readonly<Record<string, number>>
}

/** The command. */
export const sendCommand: CommandDef = command(
  { name: 'send', description: 'Delivers a signed test event, once or several times' },
  {
    provider: { type: 'positional', description: 'stripe', required: true },
    type: {
      type: 'positional',
      description: `Such as ${Object.keys(stripeEvents)[0]}`,
      required: true,
    },
    order: { type: 'string', description: 'The order that it is about (1001)', valueHint: 'ID' },
    times: {
      type: 'string',
      description: 'How many deliveries of this one event (1)',
      valueHint: 'N',
    },
    amount: { type: 'string', description: 'In minor units (4900)', valueHint: 'N' },
    currency: { type: 'string', description: 'ISO code (usd)' },
    email: { type: 'string', description: "The customer's address" },
    'event-id': {
      type: 'string',
      description: 'The event id; it follows from the rest otherwise',
      valueHint: 'ID',
    },
    url: { type: 'string', description: 'Where to; a running dev otherwise' },
    secret: { type: 'string', description: 'The signing secret; STRIPE_WEBHOOK_SECRET otherwise' },
  },
  async ({ args, out, world }) => {
    if (args.provider !== 'stripe')
      throw usageError(`send knows the provider stripe, not "${args.provider}"`)
    const { environment } = world
    const times = count('times', args.times, mostTimes) ?? 1
    const event = eventOf(args.type, {
      order: args.order ?? '1001',
      ...optional('amount', count('amount', args.amount, Number.MAX_SAFE_INTEGER)),
      ...optional('currency', args.currency),
      ...optional('email', args.email),
      ...optional('eventId', args['event-id']),
    })
    const url = args.url ?? devUrl(environment.dataDir)
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw usageError(`--url must be an http or https URL, not "${url}"`)
    const secret = args.secret ?? environment.value('STRIPE_WEBHOOK_SECRET') ?? developmentSecret
    const report = await send(url, factories.stripeBody(event), secret, times)
    const { id } = event as { id: string }
    out.result({ ...report, event_id: id, event_type: args.type }, (safe) =>
      sendText(safe, world.program),
    )
    return report.accepted === times ? 0 : 1
  },
)

function eventOf(type: string, options: EventOptions): object {
  const make = Object.hasOwn(stripeEvents, type) ? stripeEvents[type] : undefined
  if (make !== undefined) return make(options)
  const known = Object.keys(stripeEvents)
  const near = nearest(type, known)
  throw usageError(
    `send does not know the type "${type}"${near === null ? `; it knows ${known.join(', ')}` : `, did you mean ${near}?`}`,
  )
}

function devUrl(dataDir: string): string {
  const dev = findRunningDev(dataDir)
  if (dev !== null) return `${dev.url}/webhooks/stripe`
  throw new HookledgerError(
    'HKL_NOT_FOUND',
    `no hookledger dev is running on ${dataDir}: start it, or name where to send with --url`,
  )
}

/** All at once: copies that race each other are what a receiver must stand. */
async function send(
  url: string,
  body: string,
  secret: string,
  times: number,
): Promise<Pick<SendReport, 'url' | 'sent' | 'accepted' | 'refused'>> {
  const refused: Record<string, number> = {}
  let accepted = 0
  let started = 0
  const deliver = async (): Promise<void> => {
    while (started < times) {
      started++
      const status = await post(url, body, secret)
      if (status === '200') accepted++
      else refused[status] = (refused[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: Math.min(times, 16) }, deliver))
  return { url, sent: times, accepted, refused }
}

async function post(url: string, body: string, secret: string): Promise<string> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: signStripe(body, secret),
      signal: AbortSignal.timeout(requestMs),
      redirect: 'manual',
    })
    await response.arrayBuffer()
    return String(response.status)
  } catch (error) {
    const cause =
      error instanceof Error && error.cause instanceof Error && 'code' in error.cause
        ? String(error.cause.code)
        : 'no answer'
    return cause
  }
}

function sendText(report: SendReport, program: string): string {
  const refused = Object.entries(report.refused).map(([status, times]) => `${times} × ${status}`)
  return [
    `${report.event_type} ${report.event_id}: ${plural(report.sent, 'delivery')} to ${report.url}, ${report.accepted} answered 200`,
    ...(refused.length === 0 ? [] : [`refused or failed: ${refused.join(', ')}`]),
    ...(report.accepted === 0 ? [] : [`what became of it: ${program} explain ${report.event_id}`]),
  ].join('\n')
}

function count(option: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= most) return value
  throw usageError(`--${option} must be a whole number from 1 to ${most}, not "${text}"`)
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
}
