/**
 * The command line from source, on the demo shop's configuration: `npm run --silent hookledger -- ARGS`.
 * It runs in this process, so that signals reach it once and nothing stands between.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
process.env.TSX_TSCONFIG_PATH ||= join(root, 'tsconfig.json')
process.env.HOOKLEDGER_DATA_DIR ||= join(root, '.hookledger')
globalThis.hookledgerProgram = 'npm run --silent hookledger --'
if (!process.argv.some((word) => word === '--config' || word.startsWith('--config='))) {
  process.argv.splice(2, 0, '--config', join(root, 'examples/shop/hookledger.config.ts'))
}
const { register } = await import('tsx/esm/api')
register()
await import('../src/cli/main.ts')
