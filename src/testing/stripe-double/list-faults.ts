/**
 * Lists that go wrong, as lists of real providers have: pages that come again, that miss records, that lie
 * about the end, and records that vanish between two pages.
 */
import { missing } from './api-error.ts'
import type { Page } from './list-pages.ts'

/**
 * What is wrong with the page of a planted fault:
 * - `repeated`: the page that was answered before it comes again (only a further page can);
 * - `ends_early`: it says that nothing comes after it, whatever is left;
 * - `never_ends`: it says that more comes after it, although nothing does;
 * - `empty`: it has no records and says that more come after it;
 * - `cursor_lost`: the record that it begins after is not known any more (only a further page can);
 * - `shrunken`: every third record is missing in it;
 * - `outside`: its last record is one from before the window that was asked for.
 */
export type ListFault =
  'repeated' | 'ends_early' | 'never_ends' | 'empty' | 'cursor_lost' | 'shrunken' | 'outside'

/** The lists of one double, with what was answered last. */
export class ListFaults {
  readonly #last = new Map<string, Page<object>>()

  /**
   * The page as the fault makes it; `list` tells lists apart, `oldest` is a record from long ago.
   *
   * @throws StripeApiError 400 for a cursor that is lost
   */
  answer(
    list: string,
    page: Page<object>,
    fault: ListFault | undefined,
    request: { readonly after: string | undefined; readonly oldest: () => object | undefined },
  ): Page<object> {
    const spoiled = fault === undefined ? page : this.#spoil(list, page, fault, request)
    this.#last.set(list, spoiled)
    return spoiled
  }

  #spoil(
    list: string,
    page: Page<object>,
    fault: ListFault,
    { after, oldest }: { readonly after: string | undefined; oldest: () => object | undefined },
  ): Page<object> {
    switch (fault) {
      case 'repeated':
        return this.#last.get(list) ?? page
      case 'ends_early':
        return { ...page, has_more: false }
      case 'never_ends':
        return { ...page, has_more: true }
      case 'empty':
        return { ...page, data: [], has_more: true }
      case 'cursor_lost':
        throw missing('record', after ?? '', 'starting_after')
      case 'shrunken':
        return { ...page, data: page.data.filter((_, at) => at % 3 !== 1) }
      case 'outside': {
        const stray = oldest()
        return stray === undefined ? page : { ...page, data: [...page.data.slice(0, -1), stray] }
      }
    }
  }
}
