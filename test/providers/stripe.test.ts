import { inspect } from 'node:util'
import fc from 'fast-check'
import Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { stripe } from '../../src/providers/stripe.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { delivery, now, nowMs, otherStripeSecret, stripeSecret } from './deliveries.ts'

const source = stripe({ signingSecrets: [stripeSecret] })
const body = stripeBody(checkoutSessionCompleted({ order: '1001' }))
const signed = signStripe(body, stripeSecret, now)
const header = signed['stripe-signature'] ?? ''
const hex = header.slice(header.indexOf('v1=') + 3)

function verdictOf(signature: string | undefined, sent: string | Uint8Array = body): unknown {
  const verdict = source.verify(delivery(sent, { 'stripe-signature': signature }), nowMs)
  return verdict.ok ? 'valid' : verdict.reason
}

/** Stripe's own package, asked about the same delivery. */
function officialAccepts(text: string, signature: string, secret: string, atMs = nowMs): boolean {
  try {
    Stripe.webhooks.signature?.verifyHeader(text, signature, secret, 300, undefined, atMs)
    return true
  } catch {
    return false
  }
}

describe('stripe().verify', () => {
  it('accepts what Stripe signs', () => {
    expect(source.verify(delivery(body, signed), nowMs)).toEqual({ ok: true, secret: 0 })
  })

  it.each([
    ['no header', undefined, 'missing'],
    ['an empty header', '', 'missing'],
    ['a header of nothing', ',', 'malformed'],
    ['no v1', `t=${now},v0=${hex}`, 'malformed'],
    ['no timestamp', `v1=${hex}`, 'malformed'],
    ['a timestamp without a value', `t,v1=${hex}`, 'malformed'],
    ['a timestamp that is not a number', `t=now,v1=${hex}`, 'malformed'],
    ['two timestamps', `t=${now},t=${now},v1=${hex}`, 'malformed'],
    ['a header that came twice', `${header}, ${header}`, 'malformed'],
    ['a header that came twice, joined tightly', `${header},${header}`, 'malformed'],
    ['a tab', `t=${now},\tv1=${hex}`, 'malformed'],
    ['an empty v1', `t=${now},v1=`, 'malformed'],
    ['a v1 without a value beside a valid one', `t=${now},v1=${hex},v1`, 'malformed'],
    ['a truncated v1', `t=${now},v1=${hex.slice(0, -2)}`, 'mismatch'],
    ['a v1 that is too long', `t=${now},v1=${hex}00`, 'mismatch'],
    ['an upper-case v1', `t=${now},v1=${hex.toUpperCase()}`, 'mismatch'],
    ['junk behind v1', `t=${now},v1=${hex}=`, 'mismatch'],
    ['the signature under another scheme', `t=${now},v1=${'0'.repeat(64)},v2=${hex}`, 'mismatch'],
    ['the signature of another time', `t=${now - 1},v1=${hex}`, 'mismatch'],
    ['a scheme in upper case', `t=${now},V1=${hex}`, 'malformed'],
  ])('refuses %s', (_, signature, reason) => {
    expect(verdictOf(signature)).toBe(reason)
  })

  it('refuses the body with any single bit flipped', () => {
    const bytes = Buffer.from(body, 'utf8')
    for (let at = 0; at < bytes.length; at += 13) {
      const forged = Buffer.from(bytes)
      forged[at] = (forged[at] ?? 0) ^ (1 << (at & 7))
      expect(verdictOf(header, forged)).toBe('mismatch')
    }
  })

  it('refuses a body that was parsed and written again', () => {
    expect(verdictOf(header, JSON.stringify(JSON.parse(body)))).toBe('mismatch')
  })

  it('refuses a body with a line end too many, and one too short', () => {
    expect(verdictOf(header, `${body}\n`)).toBe('mismatch')
    expect(verdictOf(header, body.slice(0, -1))).toBe('mismatch')
    expect(verdictOf(header, '')).toBe('mismatch')
  })

  it("refuses what another source's secret signed", () => {
    const other = signStripe(body, otherStripeSecret, now)
    expect(verdictOf(other['stripe-signature'])).toBe('mismatch')
  })

  it('verifies under every secret of a rotation, and says which one', () => {
    const rotating = stripe({ signingSecrets: [stripeSecret, otherStripeSecret] })
    const old = signStripe(body, otherStripeSecret, now)
    const both = signStripe(body, ['whsec_unknownunknown', otherStripeSecret, stripeSecret], now)
    expect(rotating.verify(delivery(body, old), nowMs)).toEqual({ ok: true, secret: 1 })
    expect(rotating.verify(delivery(body, both), nowMs)).toEqual({ ok: true, secret: 0 })
  })

  it('finds the one valid v1 among many', () => {
    const noise = Array.from({ length: 100 }, (_, index) => `v1=${String(index).padStart(64, '0')}`)
    expect(verdictOf([`t=${now}`, ...noise, `v1=${hex}`, 'v1=potato', 'v0=x'].join(','))).toBe(
      'valid',
    )
  })

  it.each([
    [299, 'valid'],
    [300, 'valid'],
    [301, 'too_old'],
    [-299, 'valid'],
    [-300, 'valid'],
    [-301, 'too_new'],
  ])('says of an authentic delivery sent %d seconds ago: %s', (age, expected) => {
    expect(verdictOf(signStripe(body, stripeSecret, now - age)['stripe-signature'])).toBe(expected)
  })

  it('calls a forged delivery a mismatch, however old it is', () => {
    const forged = signStripe(body, otherStripeSecret, now - 9_999)
    expect(verdictOf(forged['stripe-signature'])).toBe('mismatch')
  })

  it('takes its tolerance from the options', () => {
    const strict = stripe({ signingSecrets: [stripeSecret], toleranceSeconds: 10 })
    const at = (age: number): unknown =>
      strict.verify(delivery(body, signStripe(body, stripeSecret, now - age)), nowMs)
    expect(at(10)).toEqual({ ok: true, secret: 0 })
    expect(at(11)).toEqual({ ok: false, reason: 'too_old' })
  })

  it.each([
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d])],
    ['nothing', Buffer.alloc(0)],
  ])('verifies the bytes themselves: %s', (_, bytes) => {
    expect(verdictOf(signStripe(bytes, stripeSecret, now)['stripe-signature'], bytes)).toBe('valid')
  })
})

describe("stripe().verify beside Stripe's own package", () => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }).filter(isPlainText)

  /** What its TextDecoder neither drops nor replaces. */
  function isPlainText(candidate: string): boolean {
    return !candidate.startsWith('\ufeff') && candidate.isWellFormed()
  }

  it('accepts every body that the package signs', () => {
    fc.assert(
      fc.property(text, (payload) => {
        const signature = Stripe.webhooks.generateTestHeaderString({
          payload,
          secret: stripeSecret,
          timestamp: now,
        })
        expect(verdictOf(signature, payload)).toBe('valid')
      }),
    )
  })

  it('signs so that the package accepts', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: -300, max: 300 }), (payload, age) => {
        const signature = signStripe(payload, stripeSecret, now - age)['stripe-signature'] ?? ''
        expect(officialAccepts(payload, signature, stripeSecret)).toBe(true)
      }),
    )
  })

  const element = fc.oneof(
    fc.constantFrom(
      `t=${now}`,
      `t=${now - 299}`,
      `t=${now - 301}`,
      't=',
      't',
      `t=0${now}`,
      `t=${now}x`,
    ),
    fc.constantFrom(`v1=${hex}`, `v1=${hex}`, `v1=${hex.slice(1)}`, 'v1=', 'v1', `v1=${hex}=`),
    fc.constantFrom(`v0=${hex}`, ` v1=${hex}`, '', '=', `v1=${hex.toUpperCase()}`, 'v1=potato'),
    fc.constantFrom(
      `v1=${signStripe(body, stripeSecret, now - 299)['stripe-signature']?.slice(-64)}`,
    ),
    fc.constantFrom(
      `v1=${signStripe(body, stripeSecret, now - 301)['stripe-signature']?.slice(-64)}`,
    ),
  )

  it('never accepts a header that the package refuses, and refuses more only for a lenient spelling', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.array(element, { maxLength: 5 }), (elements) => {
        const signature = elements.join(',')
        const ours = verdictOf(signature) === 'valid'
        const official = officialAccepts(body, signature, stripeSecret)
        if (ours) accepted++
        if (ours) expect(official).toBe(true)
        const lenient =
          /\s/.test(signature) ||
          elements.filter((one) => one.startsWith('t=')).length > 1 ||
          elements.some((one) => /^t=(?:0|.*x)/.test(one) || /^v1=.*=/.test(one) || one === 't')
        if (official && !lenient) expect(ours).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(20)
  })
})

describe('stripe() options', () => {
  // nothing is thrown at import: the source carries its problem, and verifies nothing
  const problemOf = (options: object): unknown => {
    const made = stripe({ signingSecrets: [stripeSecret], ...options })
    if (made.problem !== undefined) {
      const signed = delivery('{}', signStripe('{}', stripeSecret, now))
      expect(made.verify(signed, nowMs).ok).toBe(false)
    }
    return made.problem
  }

  it.each([
    ['an unset secret', [undefined], 'signingSecrets[0]'],
    ['an empty secret', [''], 'signingSecrets[0]'],
    ['a secret of whitespace', ['   '], 'signingSecrets[0]'],
    ['a secret with a line end', [`${stripeSecret}\n`], 'signingSecrets[0]'],
    ['a secret with a space in front', [` ${stripeSecret}`], 'signingSecrets[0]'],
    ['a secret that is too short', ['whsec_short'], 'signingSecrets[0]'],
    ['an API key', [`sk_test_${'a'.repeat(30)}`], 'signingSecrets[0]'],
    ['a second secret that is unset', [stripeSecret, undefined], 'signingSecrets[1]'],
    ['a secret that is no text', [42 as unknown as string], 'signingSecrets[0]'],
    ['no secrets', [], 'signingSecrets'],
    ['a text instead of an array', stripeSecret as unknown as string[], 'signingSecrets'],
    ['nothing', undefined as unknown as string[], 'signingSecrets'],
  ])('refuses %s in one line that names the option', (_, signingSecrets, option) => {
    const error = problemOf({ signingSecrets }) as Error
    expect(error).toMatchObject({ code: 'HKL_CONFIG_SECRET' })
    expect(error.message).toContain(`stripe(): ${option} `)
    expect(error.message).not.toMatch(/\n/)
    for (const secret of [signingSecrets ?? []].flat()) {
      if (String(secret).trim() !== '' && secret !== undefined && secret !== (42 as never)) {
        expect(error.message).not.toContain(String(secret).trim())
      }
    }
  })

  it.each([
    ['environment', { environment: 'production' as 'live' }],
    ['toleranceSeconds', { toleranceSeconds: 0 }],
    ['toleranceSeconds', { toleranceSeconds: -300 }],
    ['toleranceSeconds', { toleranceSeconds: 300.5 }],
    ['toleranceSeconds', { toleranceSeconds: NaN }],
    ['toleranceSeconds', { toleranceSeconds: 300_000 }],
    ['toleranceSeconds', { toleranceSeconds: '300' as unknown as number }],
    ['account', { account: '' }],
    ['account', { account: 'acct 1' }],
    ['connect', { connect: 'acct_1' as unknown as string[] }],
    ['connect[1]', { connect: ['acct_1', ''] }],
    ['apiBase', { apiBase: 'localhost:9999' }],
    ['apiBase', { apiBase: 'ftp://localhost' }],
  ])('refuses a bad %s', (option, options) => {
    const error = problemOf(options) as Error
    expect(error).toMatchObject({ code: 'HKL_CONFIG_INVALID' })
    expect(error.message).toContain(`stripe(): ${option} `)
  })

  it('keeps what it is given, and says what is not given', () => {
    const full = stripe({ signingSecrets: [stripeSecret], account: 'acct_1', environment: 'live' })
    expect(full).toMatchObject({ provider: 'stripe', account: 'acct_1', environment: 'live' })
    expect(source.account).toBeUndefined()
    expect(source.environment).toBeUndefined()
  })

  it('has an API only with a key, and a base without a slash at the end', () => {
    const make = (options: object): unknown =>
      stripe({ signingSecrets: [stripeSecret], ...options }).api
    expect(make({})).toBeUndefined()
    expect(make({ apiKey: '' })).toBeUndefined()
    expect(make({ apiKey: 'sk_test_1' })).toEqual({
      base: 'https://api.stripe.com',
      key: 'sk_test_1',
    })
    const local = { apiKey: 'sk_test_1', apiBase: 'http://127.0.0.1:9000/' }
    expect(make(local)).toEqual({ base: 'http://127.0.0.1:9000', key: 'sk_test_1' })
    expect(problemOf({ apiKey: 'sk_test_1\n' })).toMatchObject({
      code: 'HKL_CONFIG_SECRET',
    })
  })

  it('shows neither secret nor key when it is printed', () => {
    const apiKey = 'sk_test_neverPrintThis'
    const printed = stripe({ signingSecrets: [stripeSecret], apiKey })
    const shown = [inspect(printed, { depth: 9 }), JSON.stringify(printed)].join()
    expect(shown).not.toContain(stripeSecret)
    expect(shown).not.toContain(apiKey)
  })

  it('lets its own account act, and connected ones as configured', () => {
    const make = (connect?: true | string[]): ReturnType<typeof stripe> =>
      stripe({ signingSecrets: [stripeSecret], account: 'acct_own', ...(connect && { connect }) })
    expect(make().allowsAccount('acct_own')).toBe(true)
    expect(make().allowsAccount('acct_other')).toBe(false)
    expect(make(['acct_a']).allowsAccount('acct_a')).toBe(true)
    expect(make(['acct_a']).allowsAccount('acct_b')).toBe(false)
    expect(make(true).allowsAccount('acct_b')).toBe(true)
    expect(make(true).allowsAccount(`sha256:${'0'.repeat(64)}`)).toBe(false)
  })
})
