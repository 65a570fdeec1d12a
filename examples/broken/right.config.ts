/** Nothing is broken: what the other configurations are compared with. The drill passes. */
import { sale, setup, shop } from './shop.ts'

export const hookledger = shop(sale())
export const drill = { setup }
