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
    search: {
      provider: "local",
      options: {
        miniSearch: {
          searchOptions: {
            // How something is done comes before why, and before what was measured. The page gets this function as text.
            boostDocument: (id: string) => {
              if (/\/tutorial\//.test(id)) return 8;
              if (/\/how-to\/|\/reference\/configuration/.test(id)) return 4;
              if (/\/api\/(?!schemas|errors|catalogue)/.test(id)) return 3;
              return /\/(?:adr|explanation)\/|\/reference\/(?:performance|reliability|mutation)|\/changelog/.test(id)
                ? 0.3
                : 1;
            },
          },
        },
      },
    },
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
