/** Broken: the email leaves while the decision is made. Each time that it is made again, another one leaves. */
import { paid, sale, setup, shop } from './shop.ts'

const broken = sale({
  paid(input) {
    void fetch(process.env['SHOP_EMAIL_URL'] ?? '', { method: 'POST', body: 'thank you' })
    return paid(input)
  },
})

export const hookledger = shop(broken)
export const drill = { setup }
