/** Broken: the credits are written over a connection of the shop's own. They stay when the effect is rolled back. */
import pg from 'pg'
import { sale, setup, shop } from './shop.ts'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 2 })
pool.on('error', () => {})

const broken = sale({
  async apply({ effect }) {
    await pool.query('insert into app.credits (order_id, reference) values ($1, $2)', [
      String(effect.data['order']),
      effect.reference,
    ])
  },
})

export const hookledger = shop(broken)
export const drill = { setup }
