import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// Names without hashes: the built files are committed, and a change of one is a change of one file.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 500,
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/app.js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: (asset) => (asset.names[0]?.endsWith('.css') ? 'assets/app.css' : 'assets/[name][extname]'),
      },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:7070' } },
});
