/**
 * Writes src/postgres/migrations.generated.ts from migrations/*.sql, so that the package reads no
 * files at run time. With --check it only compares, and fails when they differ.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const target = join(root, 'src/postgres/migrations.generated.ts')
const files = readdirSync(join(root, 'migrations'))
  .filter((file) => file.endsWith('.sql'))
  .sort()
const entries = files.map((file) => {
  const sql = readFileSync(join(root, 'migrations', file), 'utf8')
  return `  { id: ${Number.parseInt(file, 10)}, name: ${JSON.stringify(file.replace('.sql', ''))}, sql: ${JSON.stringify(sql)} },`
})
const text = `/* Generated from migrations/*.sql by scripts/embed-migrations.ts: do not edit. */

/** Every migration, in order. */
export const migrations: readonly { readonly id: number; readonly name: string; readonly sql: string }[] = [
${entries.join('\n')}
]
`
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('src/postgres/migrations.generated.ts is stale: run npm run generate')
    process.exit(1)
  }
} else writeFileSync(target, text)
