import { fileURLToPath } from "node:url";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  // Addresses are relative: the hub may stand below any path of a proxy.
  base: "./",
  plugins: [svelte()],
  resolve: { alias: { tampu: fileURLToPath(new URL("../bindings/typescript/src/index.ts", import.meta.url)) } },
  build: {
    target: "es2023",
    // The policy of the pages allows no data in addresses, and no script in a page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // A development server shows a hub that runs: TAMPU_HUB=http://127.0.0.1:7449 npx vite
  server: { proxy: { "/api": { target: process.env.TAMPU_HUB ?? "http://127.0.0.1:7449", ws: true } } },
});
