/** Broken: the event's id is the key of the effect. The same payment told by a second event is credited twice. */
import { paid, sale, setup, shop } from './shop.ts'

const broken = sale({
  paid: (input) => paid(input, { reference: input.event.id }),
})

export const hookledger = shop(broken)
export const drill = { setup }
