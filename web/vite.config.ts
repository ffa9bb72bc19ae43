import { defineConfig } from "vite";

// The development server sends API calls to a running lakescope.
const server = process.env["LAKESCOPE_URL"] ?? "http://127.0.0.1:8484";
const proxy = Object.fromEntries(["/api", "/health", "/ready", "/metrics"].map((path) => [path, server]));

export default defineConfig({
  server: { proxy },
  worker: { format: "es" },
  build: {
    target: "es2022",
    // A strict content security policy allows files only, so nothing may become a data: address but images.
    assetsInlineLimit: 0,
    // The polyfill would be a second inline-like module on every page; all targets preload modules themselves.
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 120,
  },
});
