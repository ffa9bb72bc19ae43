// Lets node run the tests, which are TypeScript: types are taken away as each file is loaded.
import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { fileURLToPath } from "node:url";

if (import.meta.url.endsWith("?hooks") === false) register(`${import.meta.url}?hooks`);

export async function load(url, context, next) {
  if (!url.startsWith("file:") || !/\.tsx?$/.test(new URL(url).pathname)) return next(url, context);
  const { transformWithOxc } = await import("vite");
  const file = fileURLToPath(url);
  const { code } = await transformWithOxc(await readFile(file, "utf8"), file, { sourcemap: false });
  return { format: "module", shortCircuit: true, source: code };
}
