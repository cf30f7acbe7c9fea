import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";

const pages = join(import.meta.dirname, "../pages");
const { HERALD_SITE_REPOSITORY: repository, HERALD_SITE_BASE: base = "/" } = process.env;

/** The documentation site. `pages.ts` has written its pages and its menu. A link to a page that does not exist fails the build. */
export default defineConfig({
  title: "Herald",
  description: "Self-hosted push notifications through APNs, FCM and Web Push",
  lang: "en",
  base,
  srcDir: pages,
  outDir: join(import.meta.dirname, "../dist"),
  cleanUrls: true,
  markdown: { languageAlias: { promql: "sql" } },
  vite: { build: { chunkSizeWarningLimit: 5_000 } }, // the search's index
  head: [["link", { rel: "icon", href: `${base}icon.svg`, type: "image/svg+xml" }]],
  themeConfig: {
    logo: "/icon.svg",
    search: { provider: "local" },
    outline: { level: [2, 3] },
    nav: [
      { text: "Tutorial", link: "/tutorial/first-push" },
      { text: "Guides", link: "/contents" },
      { text: "API", link: "/api/" },
    ],
    sidebar: JSON.parse(readFileSync(join(pages, "menu.json"), "utf8")),
    ...(repository && { socialLinks: [{ icon: "github", link: repository }] }),
  },
});
