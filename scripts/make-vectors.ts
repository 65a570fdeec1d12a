/**
 * Makes test/providers/vectors/*.json: deliveries signed and judged by the official packages, beside
 * what our rule says of them. `--check` writes nothing and exits 1 when a file is not what this makes.
 *
 *     npx tsx scripts/make-vectors.ts [--check]
 */
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'

/** A delivery; `expect` is ours, `official` the package's, `differs` the property that sets us apart. */
interface Vector {
  readonly name: string
  readonly secrets: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly bodyBase64?: string
  /** Unix seconds of the receiver's clock. */
  readonly now: number
  readonly expect: 'valid' | 'missing' | 'malformed' | 'mismatch' | 'too_old' | 'too_new'
  readonly differs?: string
}

type Judge = (vector: Vector, body: Buffer) => boolean

const sentAt = 1_700_000_000

function bytesOf(vector: Vector): Buffer {
  return vector.bodyBase64 === undefined
    ? Buffer.from(vector.body ?? '', 'utf8')
    : Buffer.from(vector.bodyBase64, 'base64')
}

/** Both packages read the clock themselves. */
function atTime<T>(seconds: number, run: () => T): T {
  const realNow = Date.now
  Date.now = () => seconds * 1000
  try {
    return run()
  } finally {
    Date.now = realNow
  }
}

function accepts(run: () => unknown): boolean {
  try {
    run()
    return true
  } catch {
    return false
  }
}

// ---------------------------------------------------------------------------------------- Stripe

const stripeSecret = 'whsec_vectorsOfOurOwn0123456789abcd'
const stripeOld = 'whsec_theOneBeforeTheRotation01234'
const stripeText = '{\n  "id": "evt_vector",\n  "object": "event",\n  "name": "Zoë 🎈"\n}'

function hexOf(body: string, timestamp = sentAt, secret = stripeSecret): string {
  const header = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp })
  return header.slice(header.indexOf('v1=') + 3)
}

const stripeHex = hexOf(stripeText)
const wrongHex = hexOf(stripeText, sentAt, stripeOld)
const notANumberHex = createHmac('sha256', stripeSecret).update(`NaN.${stripeText}`).digest('hex')

function stripeVector(
  name: string,
  signature: string,
  expect: Vector['expect'],
  more: Partial<Vector> = {},
): Vector {
  const headers: Record<string, string> = signature === '' ? {} : { 'Stripe-Signature': signature }
  const common = { name, secrets: [stripeSecret], headers, now: sentAt, expect }
  const body = more.bodyBase64 === undefined ? { body: stripeText } : {}
  return { ...common, ...body, ...more }
}

const t = `t=${sentAt}`
const stripeVectors: readonly Vector[] = [
  stripeVector('one v1 over the body', `${t},v1=${stripeHex}`, 'valid'),
  stripeVector('v1 before t', `v1=${stripeHex},${t}`, 'valid'),
  stripeVector(
    'v0 and an unknown scheme beside v1',
    `${t},v1=${stripeHex},v0=${wrongHex},v9=x`,
    'valid',
  ),
  stripeVector('two v1, the second matches', `${t},v1=${wrongHex},v1=${stripeHex}`, 'valid'),
  stripeVector(
    'a v1 that is no hex beside one that matches',
    `${t},v1=potato,v1=${stripeHex}`,
    'valid',
  ),
  stripeVector('signed with the old of two secrets', `${t},v1=${wrongHex}`, 'valid', {
    secrets: [stripeSecret, stripeOld],
  }),
  stripeVector('300 seconds old', `${t},v1=${stripeHex}`, 'valid', { now: sentAt + 300 }),
  stripeVector('301 seconds old', `${t},v1=${stripeHex}`, 'too_old', { now: sentAt + 301 }),
  stripeVector('300 seconds ahead', `${t},v1=${stripeHex}`, 'valid', { now: sentAt - 300 }),
  stripeVector('301 seconds ahead', `${t},v1=${stripeHex}`, 'too_new', {
    now: sentAt - 301,
    differs: 'from the future',
  }),
  stripeVector('no header', '', 'missing'),
  stripeVector('no timestamp', `v1=${stripeHex}`, 'malformed'),
  stripeVector('an empty timestamp', `t=,v1=${stripeHex}`, 'malformed'),
  stripeVector('no v1', `${t},v0=${stripeHex}`, 'malformed'),
  stripeVector('an empty v1', `${t},v1=`, 'malformed'),
  stripeVector('another secret', `${t},v1=${wrongHex}`, 'mismatch'),
  stripeVector('another body', `${t},v1=${stripeHex}`, 'mismatch', { body: `${stripeText}\n` }),
  stripeVector('another timestamp', `t=${sentAt + 1},v1=${stripeHex}`, 'mismatch'),
  stripeVector('a truncated v1', `${t},v1=${stripeHex.slice(0, 62)}`, 'mismatch'),
  stripeVector('an upper-case v1', `${t},v1=${stripeHex.toUpperCase()}`, 'mismatch'),
  stripeVector('whitespace after the comma', `${t}, v1=${stripeHex}`, 'malformed'),
  stripeVector('two headers joined', `${t},v1=${stripeHex}, ${t},v1=${stripeHex}`, 'malformed', {
    differs: 'joined headers',
  }),
  stripeVector('two timestamps', `t=1,${t},v1=${stripeHex}`, 'malformed', {
    differs: 'two timestamps',
  }),
  stripeVector('a timestamp with junk behind it', `${t}junk,v1=${stripeHex}`, 'malformed', {
    differs: 'lenient timestamp',
  }),
  stripeVector('a timestamp with a leading zero', `t=0${sentAt},v1=${stripeHex}`, 'malformed', {
    differs: 'lenient timestamp',
  }),
  stripeVector('a timestamp that is no number', `t=abc,v1=${notANumberHex}`, 'malformed', {
    // The package signs the text "NaN" for it, and NaN is never too old.
    differs: 'lenient timestamp',
  }),
  stripeVector('a v1 with junk behind it', `${t},v1=${stripeHex}=junk`, 'mismatch', {
    differs: 'junk in a signature',
  }),
  stripeVector('a byte order mark', `${t},v1=${hexOf('\ufeff{}')}`, 'valid', {
    body: '\ufeff{}',
    differs: 'over bytes',
  }),
]

const judgeStripe: Judge = ({ secrets, headers, now }, body) =>
  secrets.some((secret) =>
    accepts(() =>
      Stripe.webhooks.signature?.verifyHeader(
        body,
        headers['Stripe-Signature'] ?? '',
        secret,
        300,
        undefined,
        now * 1000,
      ),
    ),
  )

// ----------------------------------------------------------------------------- Standard Webhooks

const sharedSecret = `whsec_${Buffer.from('a shared secret, 32 bytes of it!').toString('base64')}`
const sharedOld = `whsec_${Buffer.from('the secret before the rotation..').toString('base64')}`
const id = 'msg_vector'
const text = '{"type":"invoice.paid","timestamp":"2023-11-14T22:13:20.5Z","data":{"name":"Zoë 🎈"}}'

function tokenOf(body: string, secret = sharedSecret, timestamp = sentAt, messageId = id): string {
  return new StandardWebhook(secret).sign(messageId, new Date(timestamp * 1000), body)
}

const token = tokenOf(text)
const wrongToken = tokenOf(text, sharedOld)

function standardVector(
  name: string,
  signature: string,
  expect: Vector['expect'],
  more: Partial<Vector> = {},
  names = 'webhook',
): Vector {
  const headers = {
    [`${names}-id`]: id,
    [`${names}-timestamp`]: String(sentAt),
    [`${names}-signature`]: signature,
  }
  return { name, secrets: [sharedSecret], headers, body: text, now: sentAt, expect, ...more }
}

function withHeaders(changes: Record<string, string | undefined>): Partial<Vector> {
  const all: Record<string, string | undefined> = {
    'webhook-id': id,
    'webhook-timestamp': String(sentAt),
    'webhook-signature': token,
    ...changes,
  }
  const given = Object.entries(all).filter(([, value]) => value !== undefined)
  return { headers: Object.fromEntries(given) as Record<string, string> }
}

const standardVectors: readonly Vector[] = [
  standardVector('one v1', token, 'valid'),
  standardVector('the secret without its prefix', token, 'valid', {
    secrets: [sharedSecret.slice('whsec_'.length)],
  }),
  standardVector('several, one matches', `${wrongToken} v2,AAAA ${token}`, 'valid'),
  standardVector('signed with the old of two secrets', wrongToken, 'valid', {
    secrets: [sharedSecret, sharedOld],
  }),
  standardVector('300 seconds old', token, 'valid', { now: sentAt + 300 }),
  standardVector('301 seconds old', token, 'too_old', { now: sentAt + 301 }),
  standardVector('300 seconds ahead', token, 'valid', { now: sentAt - 300 }),
  standardVector('301 seconds ahead', token, 'too_new', { now: sentAt - 301 }),
  standardVector('no id', token, 'missing', withHeaders({ 'webhook-id': undefined })),
  standardVector('an empty id', token, 'missing', withHeaders({ 'webhook-id': '' })),
  standardVector('no timestamp', token, 'missing', withHeaders({ 'webhook-timestamp': undefined })),
  standardVector('no signature', '', 'missing'),
  standardVector('an empty v1', 'v1,', 'mismatch'),
  standardVector('an empty v1 beside nothing', 'v1, ', 'mismatch'),
  standardVector('another secret', wrongToken, 'mismatch'),
  standardVector('another body', token, 'mismatch', { body: `${text} ` }),
  standardVector('another id', token, 'mismatch', withHeaders({ 'webhook-id': 'msg_other' })),
  standardVector(
    'another timestamp',
    token,
    'mismatch',
    withHeaders({ 'webhook-timestamp': String(sentAt + 1) }),
  ),
  standardVector('a truncated v1', token.slice(0, -4), 'mismatch'),
  standardVector('a v1 with junk behind it', `${token}AAAA`, 'mismatch'),
  standardVector('a version of no meaning', token.replace('v1,', 'v3,'), 'mismatch'),
  standardVector('a signature with no version', token.slice(3), 'malformed'),
  standardVector('two headers joined', `${token}, ${token}`, 'malformed', {
    differs: 'joined headers',
  }),
  standardVector('a timestamp with junk behind it', token, 'malformed', {
    ...withHeaders({ 'webhook-timestamp': `${sentAt}abc` }),
    differs: 'lenient timestamp',
  }),
  standardVector(
    'a timestamp in words',
    token,
    'malformed',
    withHeaders({ 'webhook-timestamp': 'now' }),
  ),
]

const judgeStandard: Judge = ({ secrets, headers, now }, body) =>
  secrets.some((secret) =>
    accepts(() => atTime(now, () => new StandardWebhook(secret).verify(body, { ...headers }))),
  )

const svixVectors: readonly Vector[] = [
  standardVector('one v1', token, 'valid', {}, 'svix'),
  standardVector('another secret', wrongToken, 'mismatch', {}, 'svix'),
  standardVector('301 seconds old', token, 'too_old', { now: sentAt + 301 }, 'svix'),
  standardVector('an id in the other family of names', token, 'missing', {
    headers: {
      'webhook-id': id,
      'svix-timestamp': String(sentAt),
      'svix-signature': token,
    },
    differs: 'mixed names',
  }),
]

const judgeSvix: Judge = ({ secrets, headers, now }, body) =>
  secrets.some((secret) =>
    accepts(() => atTime(now, () => new SvixWebhook(secret).verify(body, { ...headers }))),
  )

// --------------------------------------------------------------------------------------- writing

const folder = new URL('../test/providers/vectors/', import.meta.url)

function render(vectors: readonly Vector[], judge: Judge): string {
  const judged = vectors.map((vector) => ({
    ...vector,
    official: judge(vector, bytesOf(vector)) ? 'valid' : 'invalid',
  }))
  return `${JSON.stringify(judged, null, 2)}\n`
}

const files: Readonly<Record<string, string>> = {
  'stripe.json': render(stripeVectors, judgeStripe),
  'standard-webhooks.json': render(standardVectors, judgeStandard),
  'svix.json': render(svixVectors, judgeSvix),
}

function isCurrent(file: string, content: string): boolean {
  try {
    return readFileSync(new URL(file, folder), 'utf8') === content
  } catch {
    return false
  }
}

const stale = Object.entries(files).filter(([file, content]) => !isCurrent(file, content))
if (process.argv.includes('--check')) {
  for (const [file] of stale) console.error(`test/providers/vectors/${file} is out of date`)
  if (stale.length > 0) {
    console.error('run: npx tsx scripts/make-vectors.ts')
    process.exitCode = 1
  }
} else {
  for (const [file, content] of stale) writeFileSync(new URL(file, folder), content)
  console.log(`${stale.length} of ${Object.keys(files).length} files written`)
}
