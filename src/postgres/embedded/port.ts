/** Ports: a free one is found by asking the system, and remembered so that URLs keep working. */
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { writeFileDurably } from './durable-file.ts'

/** The remembered port if it is free, else another free one. */
export async function choosePort(base: string): Promise<number> {
  const remembered = readPort(base)
  if (remembered !== null && (await tryPort(remembered)) !== null) return remembered
  const free = await tryPort(0)
  if (free === null) throw new Error('the system has no free port on 127.0.0.1')
  return free
}

/** Remembers the port of a server that is up. */
export function rememberPort(base: string, port: number): void {
  if (readPort(base) !== port) writeFileDurably(join(base, 'port'), `${port}\n`, 0o644)
}

function readPort(base: string): number | null {
  const file = join(base, 'port')
  if (!existsSync(file)) return null
  const port = Number(readFileSync(file, 'utf8'))
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null
}

async function tryPort(port: number): Promise<number | null> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host: '127.0.0.1', exclusive: true }, resolve)
    })
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : null
  } catch {
    return null
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}
