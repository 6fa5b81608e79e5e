import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** The tests of modules without a page, for Node. */
export default defineConfig({
  resolve: { alias: { tampu: here("../bindings/typescript/src/index.ts") } },
  build: {
    ssr: true,
    target: "node20",
    outDir: "build",
    emptyOutDir: true,
    reportCompressedSize: false,
    rollupOptions: { input: readdirSync(here("test")).map((name) => here(`test/${name}`)), output: { entryFileNames: "[name].js" } },
  },
  publicDir: false,
});
