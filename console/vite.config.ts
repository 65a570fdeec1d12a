/**
 * Builds the console into one page, one script and one style sheet. The base is a token that the server
 * replaces when it answers the page, so that the same files serve below any path.
 */
import react from '@vitejs/plugin-react'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/__hookledger_prefix__/console/',
  plugins: [react()],
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
