/** What the queries' package has for lists without an end: ours have pages, each with an address of its own. */

function none(): never {
  throw new Error('lists of the console have pages')
}

export { none as infiniteQueryBehavior, none as hasNextPage, none as hasPreviousPage }
