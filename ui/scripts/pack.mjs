// Makes of Vite's files those that the hub has in it: each also compressed, `files.rs`, the list of them,
// and `views.rs`, the paths that show the page.
// The licences of the packages whose code is in the files stand in `licences.txt`.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const DIST = new URL(`../${process.argv[2] ?? "dist/"}`, import.meta.url);
const MODULES = new URL("../node_modules/", import.meta.url);
const KINDS = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", txt: "text/plain; charset=utf-8" };
/** Packages whose code Vite takes into the files. */
const BUNDLED = ["svelte", "esm-env", "clsx", "uplot"];

const licences = BUNDLED.map((name) => {
  const directory = new URL(`${name}/`, MODULES);
  const { version } = JSON.parse(readFileSync(new URL("package.json", directory), "utf8"));
  const file = readdirSync(directory).find((file) => /^licen[cs]e/i.test(file));
  return `${name} ${version}\n\n${readFileSync(new URL(file, directory), "utf8").trim()}\n`;
});
writeFileSync(new URL("licences.txt", DIST), licences.join("\n----\n\n"));

const files = readdirSync(DIST, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`.slice(DIST.pathname.length).replace(/^\//, ""))
  .filter((name) => KINDS[name.split(".").at(-1)])
  .sort();

const entries = files.map((name) => {
  const bytes = readFileSync(new URL(name, DIST));
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  writeFileSync(new URL(`${name}.br`, DIST), brotli);
  writeFileSync(new URL(`${name}.gz`, DIST), gzipSync(bytes, { level: 9 }));
  const tag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const text = (value) => JSON.stringify(value);
  const include = (end) => `include_bytes!(${text(name + end)})`;
  return `    ConsoleFile {
        path: ${text(name)},
        kind: ${text(KINDS[name.split(".").at(-1)])},
        tag: ${text(tag)},
        plain: ${include("")},
        gzip: ${include(".gz")},
        brotli: ${include(".br")},
    },\n`;
});
const views = /VIEWS = (\[[^\]]*\])/.exec(readFileSync(new URL("../src/lib/address.svelte.ts", import.meta.url), "utf8"))[1];
writeFileSync(new URL("views.rs", DIST), `${views}\n`);
writeFileSync(new URL("files.rs", DIST), `// Made by ui/scripts/pack.mjs: \`make ui\`.\n[\n${entries.join("")}]\n`);
