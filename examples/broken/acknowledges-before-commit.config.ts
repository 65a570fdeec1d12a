/** Broken: the provider gets its 200 before the event is stored. A crash in between loses it, and nobody sends it again. */
import type { Hookledger, IngestRequest } from 'hookledger'
import { sale, setup, shop } from './shop.ts'

export const hookledger = shop(sale())

export const drill = {
  setup,
  ingest(product: Hookledger, request: IngestRequest): Promise<{ status: number }> {
    void product.ingest(request).catch(() => {})
    return Promise.resolve({ status: 200 })
  },
}
