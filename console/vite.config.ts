/**
 * Builds the console into one page, one script and one style sheet. The base is a token that the server
 * replaces when it answers the page, so that the same files serve below any path.
 */
import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'

const inside = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** What is loaded in another's place: less of the same. */
const instead: Readonly<Record<string, string>> = {
  'react/jsx-runtime': inside('src/replaced/jsx-runtime.ts'),
  './infiniteQueryBehavior.js': inside('src/replaced/infinite-queries.ts'),
  'use-sync-external-store/shim/index.js': inside('src/replaced/external-store.ts'),
}

const replaced: Plugin = {
  name: 'replaced',
  enforce: 'pre',
  resolveId: (id, importer) =>
    Object.values(instead).includes(importer ?? '') ? null : (instead[id] ?? null),
}

export default defineConfig({
  root: inside('.'),
  base: '/__hookledger_prefix__/console/',
  plugins: [replaced, react()],
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    outDir: 'dist',
    emptyOutDir: true,
    // The policy of the page allows no inline script and no data: font or style.
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
})
