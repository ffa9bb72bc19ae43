// Runs every test; node itself may not know TypeScript, so types are taken away first.
import "../tools/typescript.mjs";

await import("./journeys.spec.ts");
await import("./keys.spec.ts");
await import("./signin.spec.ts");
await import("./live.spec.ts");
await import("./looks.spec.ts");
