// Prints what a first visit loads and fails when the script passes its budget.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET = 80 * 1024;
const dist = new URL("../dist/", import.meta.url);
const size = (name) => gzipSync(readFileSync(new URL(name, dist))).length;
const kb = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;

const html = readFileSync(new URL("index.html", dist), "utf8");
const first = [...html.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)].map((m) => m[1]);
const styles = [...html.matchAll(/href="\/([^"]+\.css)"/g)].map((m) => m[1]);
const scripts = first.reduce((sum, name) => sum + size(name), 0);

for (const name of readdirSync(new URL("assets/", dist))
  .filter((n) => n.endsWith(".js"))
  .sort())
  console.log(`${kb(size(`assets/${name}`)).padStart(9)}  ${name}${first.includes(`assets/${name}`) ? "  (first page)" : ""}`);
console.log(
  `first page: ${kb(scripts)} gzip of script of ${kb(BUDGET)}, ${kb(styles.reduce((s, n) => s + size(n), 0))} of style`,
);
if (scripts > BUDGET) {
  console.error("The first page loads more script than its budget.");
  process.exit(1);
}
