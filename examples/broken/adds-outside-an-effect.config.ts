/** Broken: `+=` in a plain handler. Once for each event id, and a fact may come under two. */
import { handle } from 'hookledger'
import { sale, setup, shop } from './shop.ts'

export const hookledger = shop(sale(), {
  handlers: [
    handle('stripe', 'payment_intent.succeeded', async ({ event, db }) => {
      await db.query('update app.balances set credits = credits + $1::bigint where account = $2', [
        event.data.object.amount_received,
        'w-1',
      ])
    }),
  ],
})
export const drill = { setup }
