import { type ApiDocument, renderErrors, renderEvents, renderReference } from "@herald/docs";

type Page = { readonly page: string; readonly name: string; readonly text: string };

/** The gateway's own pages, and their places on the site. */
const places: Readonly<Record<string, string>> = { docs: "", "docs/errors": "errors", "docs/events": "catalogue" };

/**
 * The body of one of the gateway's own pages as a page of the site. Headings get the anchors that the search divides pages by, and the
 * forms that try a request go, because no gateway answers there.
 */
const pageOf = (page: string, name: string, html: string, title = name): Page => {
  const [, main = ""] = /<main>(.*)<\/main>/s.exec(html) ?? [];
  const body = main
    .replace(/<h1>.*?<\/h1>/, "")
    // The page's title, and the heading of schemas where none follow.
    .replaceAll(new RegExp(`<h2[^>]*>(?:${name}|Schemas)</h2>`, "g"), "")
    .replaceAll(/<details hidden data-try.*?<\/details>/g, "")
    .replaceAll('href="#schema-', 'href="./schemas#schema-')
    .replaceAll(
      /<h([23]) id="([^"]+)">(.*?)<\/h\1>/g,
      '<h$1 id="$2">$3 <a class="header-anchor" href="#$2" aria-label="Permalink">&ZeroWidthSpace;</a></h$1>',
    )
    .replaceAll(
      /<span class="method">(\w+)<\/span>/g,
      (_, method: string) => `<span class="method">${method.toUpperCase()}</span> `,
    )
    .replaceAll(
      /href="\/(docs|docs\/errors|docs\/events)([#"])/g,
      (_, path, end) => `href="./${places[path] ?? ""}${end}`,
    )
    .replaceAll(/\n\s*\n/g, "\n");
  return {
    page: `api/${page}.md`,
    name,
    text: `---\noutline: [2, 3]\n---\n\n# ${title}\n\n<div v-pre class="api">\n${body}\n</div>\n`,
  };
};

const withPaths = (document: ApiDocument, paths: ApiDocument["paths"]): ApiDocument => ({
  ...document,
  info: { ...document.info, description: "" },
  paths,
  components: { ...document.components, schemas: {} },
});

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** The reference of the API: an introduction, a page for each tag, the schemas, the errors and the events. */
export const apiPages = (document: ApiDocument & { readonly tags: readonly { readonly name: string }[] }): Page[] => {
  // What most readers come for is the first page, and on it the request that sends.
  const names = document.tags
    .map(({ name }) => name)
    .toSorted((one, other) => Number(other === "Notifications") - Number(one === "Notifications"));
  const tagged = names.map((name) => {
    const paths = Object.entries(document.paths).flatMap(
      ([path, methods]): [string, ApiDocument["paths"][string]][] => {
        const own = Object.entries(methods)
          .filter(([, { tags }]) => tags[0] === name)
          .toSorted(([one], [other]) => Number(other === "post") - Number(one === "post"));
        return own.length === 0 ? [] : [[path, Object.fromEntries(own)]];
      },
    );
    return { name, page: name.toLowerCase(), paths: Object.fromEntries(paths) };
  });
  const list = tagged.map(({ name, page, paths }) => {
    const rows = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { summary, operationId }]) =>
          `| [${lowerFirst(summary)}](./${page}#${operationId}) | \`${method.toUpperCase()} ${path}\` |`,
      ),
    );
    return `## ${name}\n\n| to | request |\n|---|---|\n${rows.join("\n")}\n`;
  });
  const introduction = document.info.description.replace("/docs/errors", "[errors](./errors)");
  return [
    {
      page: "api/index.md",
      name: "Overview",
      text: `# API\n\n${introduction}\n\nA running gateway has the same reference at \`/docs\`, with forms to try requests. The [OpenAPI document](/reference/openapi.json) is for tools.\n\n${list.join("\n")}`,
    },
    ...tagged.map(({ name, page, paths }) => pageOf(page, name, renderReference(withPaths(document, paths)))),
    pageOf(
      "schemas",
      "Schemas",
      renderReference({ ...document, info: { ...document.info, description: "" }, paths: {} }),
    ),
    pageOf("errors", "Errors", renderErrors()),
    pageOf("catalogue", "Events on the bus", renderEvents()),
  ];
};
