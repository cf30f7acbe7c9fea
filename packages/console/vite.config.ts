import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const gateway = process.env.HERALD_GATEWAY ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "/console/",
  plugins: [react()],
  resolve: { conditions: ["@herald/source", "module", "browser", "development|production"] },
  build: {
    // Beside the program that serves it, and so in its image.
    outDir: "../../services/gateway/dist/console",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
    license: { fileName: "third-party-notices.md" },
  },
  // `npm run dev -w packages/console` beside `npm start`.
  server: { proxy: { "/api": gateway, "/admin": gateway, "/docs": gateway } },
});
