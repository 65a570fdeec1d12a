/**
 * A program that starts the embedded PostgreSQL of a data directory, says so in one line of JSON, and
 * stops it when its input ends. It ignores SIGINT, and exits without stopping anything when told `exit`.
 */
import { HookledgerError } from '../../src/core/errors.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts'

const dataDir = process.argv[2] ?? ''

process.on('SIGINT', () => {})

async function main(): Promise<void> {
  const notes: string[] = []
  const log = (note: string) => void notes.push(note)
  try {
    const { stop, exited, ...facts } = await startEmbeddedPostgres({ dataDir, log })
    console.log(JSON.stringify({ ...facts, notes }))
    process.stdin.on('data', (text) => {
      if (String(text).trim() === 'exit') process.exit(0)
    })
    process.stdin.on('end', () => void stop())
    await exited
  } catch (error) {
    const code = error instanceof HookledgerError ? error.code : null
    const message = error instanceof Error ? error.message : String(error)
    console.log(JSON.stringify({ code, message, notes }))
    process.exitCode = 1
    process.stdin.destroy()
  }
}

void main()
