/** Broken: a refund changes nothing. Who has the money back keeps what it bought. */
import { skip } from 'hookledger'
import { sale, setup, shop } from './shop.ts'

const broken = sale({
  refunded: () => skip('refunds are for the bookkeeping'),
})

export const hookledger = shop(broken)
export const drill = { setup }
