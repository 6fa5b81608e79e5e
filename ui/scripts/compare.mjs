// Builds the files of the console anew, and compares them with those of the repository. Exit code 1: `make ui` was forgotten.
// Compressed files are compared by their content, because releases of Node compress differently.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

const UI = new URL("../", import.meta.url);
const [COMMITTED, BUILT] = [new URL("dist/", UI), new URL("build/dist/", UI)];

const run = (...command) => execFileSync(command[0], command.slice(1), { cwd: UI, stdio: ["ignore", "ignore", "inherit"] });
run("npx", "vite", "build", "--outDir", "build/dist", "--emptyOutDir");
run("node", "scripts/pack.mjs", "build/dist/");

const namesIn = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(directory.pathname.length).replace(/^\//, ""))
    .sort();
const contentOf = (name, directory) => {
  const bytes = readFileSync(new URL(name, directory));
  return name.endsWith(".br") ? brotliDecompressSync(bytes) : name.endsWith(".gz") ? gunzipSync(bytes) : bytes;
};

const [committed, built] = [namesIn(COMMITTED), namesIn(BUILT)];
const faults = [
  ...committed.filter((name) => !built.includes(name)).map((name) => `${name} is not built any more`),
  ...built.filter((name) => !committed.includes(name)).map((name) => `${name} is missing in ui/dist`),
  ...built.filter((name) => committed.includes(name) && !contentOf(name, COMMITTED).equals(contentOf(name, BUILT))).map((name) => `${name} differs`),
];
faults.forEach((fault) => console.log(fault));
console.log(faults.length === 0 ? `${built.length} files are the same` : "run: make ui");
process.exit(faults.length === 0 ? 0 : 1);
