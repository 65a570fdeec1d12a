/**
 * The lines of a file, one at a time, with the hash of all that was read: a file of any size in memory that
 * does not grow.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { TextDecoder } from 'node:util'
import { HookledgerError } from '../core/errors.ts'

/** No line may be longer, in UTF-16 units. */
const longestLine = 4 * 1024 * 1024

/**
 * Tells every line that is not blank with its number, from 1. `false` ends it early.
 *
 * @returns the SHA-256 of what was read, in hexadecimal
 * @throws HookledgerError HKL_ADOPT_INVALID where the file cannot be read, is not UTF-8 or has an endless line
 */
export async function eachLine(
  file: string,
  tell: (text: string, line: number) => Promise<boolean>,
): Promise<string> {
  const hash = createHash('sha256')
  let number = 0
  let rest = ''
  for await (const text of decoded(file, hash)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      number += 1
      if (line.trim() !== '' && !(await tell(line.trim(), number))) return hash.digest('hex')
    }
    if (rest.length > longestLine) throw unreadable(file, `line ${number + 1} is too long`)
  }
  if (rest.trim() !== '') await tell(rest.trim(), number + 1)
  return hash.digest('hex')
}

async function* decoded(
  file: string,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const chunks: AsyncIterator<Buffer> = createReadStream(file)[Symbol.asyncIterator]()
  try {
    for (;;) {
      const chunk = await chunks.next().catch((error: unknown) => {
        throw unreadable(file, error instanceof Error ? error.message : 'it cannot be read', error)
      })
      if (chunk.done === true) return
      hash.update(chunk.value)
      yield decodedChunk(decoder, chunk.value, file)
    }
  } finally {
    await chunks.return?.()
  }
}

function decodedChunk(decoder: TextDecoder, chunk: Buffer, file: string): string {
  try {
    return decoder.decode(chunk, { stream: true })
  } catch (error) {
    throw unreadable(file, 'it is not UTF-8', error)
  }
}

function unreadable(file: string, why: string, cause?: unknown): HookledgerError {
  return new HookledgerError('HKL_ADOPT_INVALID', `${file} cannot be read: ${why}`, { cause })
}
