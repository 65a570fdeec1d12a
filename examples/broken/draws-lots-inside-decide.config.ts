/** Broken: chance decides what the effect's key is. The same event decided again is another effect. */
import { paid, sale, setup, shop } from './shop.ts'

const broken = sale({
  paid: (input) => paid(input, { reference: `lot ${Math.random()}` }),
})

export const hookledger = shop(broken)
export const drill = { setup }
