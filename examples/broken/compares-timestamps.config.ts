/** Broken: an event that was made before the payment's is taken for old news. Clocks of providers have whole seconds, and drift. */
import { skip } from 'hookledger'
import { paid, refunded, sale, setup, shop } from './shop.ts'

const broken = sale({
  paid: (input) => paid(input, { data: { at: String(input.event.created) } }),
  refunded(input) {
    const known = input.effects.find(({ type }) => type === 'credit')
    if (known !== undefined && input.event.created < Number(known.data['at']))
      return skip('it is older than what is known')
    return refunded(input)
  },
})

export const hookledger = shop(broken)
export const drill = { setup }
