import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linkOf, linkTo, pagePaths } from '../../console/src/links.ts'
import { fillPath, matchPath, pathBelow, queryText } from '../../console/src/paths.ts'

const id = fc
  .string({ minLength: 1, maxLength: 60, unit: 'grapheme' })
  .filter((text) => text.isWellFormed())

describe('matchPath', () => {
  it('finds every id again that fillPath has put into an address, whatever stands in it', () => {
    fc.assert(
      fc.property(id, id, (source, event) => {
        const params = { source, event_id: event }
        expect(matchPath(pagePaths.event, fillPath(pagePaths.event, params))).toEqual(params)
      }),
    )
    const odd = { order_id: 'a/b?c=1#d%2Fe%25 é' }
    expect(matchPath(pagePaths.order, linkTo('order', odd))).toEqual(odd)
  })

  it('refuses another path, a longer one, and one that is not encoded correctly', () => {
    expect(matchPath('/orders/:order_id', '/orders')).toBeNull()
    expect(matchPath('/orders/:order_id', '/orders/1/2')).toBeNull()
    expect(matchPath('/orders/:order_id', '/order/1')).toBeNull()
    expect(matchPath('/orders/:order_id', '/orders/%E0%A4')).toBeNull()
  })
})

describe('fillPath', () => {
  it('fills the parameters of a route of the API, and throws where one is missing', () => {
    expect(fillPath('/orders/{order_id}/graph', { order_id: 'A/1' })).toBe('/orders/A%2F1/graph')
    expect(() => fillPath('/orders/{order_id}', {})).toThrow('order_id')
  })
})

describe('queryText', () => {
  it('leaves out what is empty and encodes the rest', () => {
    expect(queryText({ q: 'a&b=c', state: '', cursor: null, limit: 50, open: false })).toBe(
      '?q=a%26b%3Dc&limit=50&open=false',
    )
    expect(queryText({})).toBe('')
  })
})

describe('pathBelow', () => {
  it('takes the base away, and knows the base itself', () => {
    expect(pathBelow('/ops/console', '/ops/console/orders/1')).toBe('/orders/1')
    expect(pathBelow('/ops/console', '/ops/console')).toBe('/')
    expect(pathBelow('/ops/console', '/ops/consoles')).toBe('/')
  })
})

describe('linkOf', () => {
  it('leads to the page of a thing by its kind, and an event by its source and id', () => {
    expect(linkOf('order', '42')).toBe('/orders/42')
    expect(linkOf('event', 'stripe/evt_1/a')).toBe('/events/stripe/evt_1%2Fa')
    expect(linkOf('event', 'evt_1')).toBe('/search?q=evt_1')
    expect(linkOf('weather', 'x')).toBeNull()
  })

  it('has one page for each address: no pattern takes the paths of another one', () => {
    const filled = Object.entries(pagePaths).map(([name, pattern]) => ({
      name,
      path: pattern.replace(/:(\w+)/g, 'x'),
    }))
    for (const { name, path } of filled) {
      const taking = Object.entries(pagePaths).find(
        ([, pattern]) => matchPath(pattern, path) !== null,
      )
      expect(taking?.[0], path).toBe(name)
    }
  })
})
