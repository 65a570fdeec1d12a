/** One server of `accept` in a process of its own; told what to be, it tells its port and ends with its parent. */
import { createBenchPool } from './server.ts'
import { startAcceptServer, type AcceptKind } from './accept-servers.ts'

const [kind, url, schema, size] = process.argv.slice(2)
const pool = createBenchPool(url ?? '', Number(size))
const server = await startAcceptServer(kind as AcceptKind, pool, schema ?? '')
process.once('disconnect', () => {
  void server
    .stop()
    .then(() => pool.end())
    .then(() => process.exit(0))
})
process.send?.({ port: server.port })
