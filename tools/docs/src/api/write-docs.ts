import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { allRoutes, publicRoutes } from "../../../../services/gateway/src/routes/all-routes.ts";
import { describeEvents } from "./describe-events.ts";
import { describeRoutes } from "./describe-routes.ts";
import { type ApiDocument, renderErrors, renderEvents, renderReference } from "./render-reference.ts";
import { pagePolicy } from "./render-schema.ts";

/** Writes what the gateway serves as documentation: in `all` with every route, in `public` with those of the public port. */
export const writeDocs = async (folder: string): Promise<void> => {
  for (const [port, routes] of Object.entries({ all: allRoutes, public: publicRoutes })) {
    const document = describeRoutes(routes);
    const files = {
      "openapi.json": JSON.stringify(document),
      "asyncapi.json": JSON.stringify(describeEvents()),
      "docs.html": renderReference(document as unknown as ApiDocument),
      "docs/errors.html": renderErrors(),
      "docs/events.html": renderEvents(),
      "policy.txt": pagePolicy,
    };
    for (const [name, text] of Object.entries(files)) {
      const file = join(folder, port, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }
};
