/** Broken: buyers are numbered by a variable of the process. A restart numbers them anew, and a retry once more. */
import { paid, sale, setup, shop } from './shop.ts'

let buyers = 0

const broken = sale({
  paid(input) {
    buyers += 1
    return paid(input, { reference: `buyer ${buyers}` })
  },
})

export const hookledger = shop(broken)
export const drill = { setup }
