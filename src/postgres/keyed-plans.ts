/**
 * Planner settings for transactions that look rows up by their keys: their plans must not depend on
 * statistics, which are as old as the last ANALYZE.
 */

/** Simple statements to be sent together with BEGIN. */
export const keyedPlans: string = [
  'set local enable_seqscan = off; set local enable_bitmapscan = off',
  'set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off',
  // keys of a batch are looked up in less time than it takes to start a process
  'set local max_parallel_workers_per_gather = 0',
].join('; ')
