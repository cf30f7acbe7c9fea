import { type Bus, openBucket } from "@herald/bus";
import {
  type Author,
  type ProjectId,
  type Template,
  TemplateRecord,
  templateKey,
  templateRequests,
} from "@herald/contracts";
import { at, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

type Stored = Template & { readonly id: string };

/** Registry's templates, each with one version at most. */
export const serveTemplates = (serve: Serve, bus: Bus): void => {
  const templates = new Map<string, Owned<Stored>>();
  const bucket = openBucket(bus, "push_content", TemplateRecord);
  const find = (projectId: ProjectId, name: string) =>
    owned(templates, { projectId }, templateKey(projectId, name), "template-not-found");
  const store = (projectId: ProjectId, name: string, content: Template["content"], author: Author) => {
    const created = !templates.has(templateKey(projectId, name));
    const value: Stored = { id: name, name, changed: true, updated_at: at(), version: "draft", author, content };
    templates.set(templateKey(projectId, name), { projectId, value });
    return { template: value, created };
  };
  serve(templateRequests.put, ({ projectId, name, content, author }) => store(projectId, name, content, author));
  serve(templateRequests.get, ({ projectId, name }) => find(projectId, name).value);
  serve(templateRequests.list, ({ projectId, page }) => pageOf(rows(templates, projectId), page));
  serve(templateRequests.versions, ({ projectId, name, page }) => {
    const { author } = find(projectId, name).value;
    return pageOf([{ id: "1", version: 1, author, published_at: at() }], page);
  });
  serve(templateRequests.publish, async ({ projectId, name }) => {
    const { content } = find(projectId, name).value;
    await bucket.put(templateKey(projectId, name), { projectId, name, version: 1, content });
    return { version: 1 };
  });
  serve(templateRequests.delete, async ({ projectId, name }) => {
    find(projectId, name);
    templates.delete(templateKey(projectId, name));
    await bucket.delete(templateKey(projectId, name));
    return {};
  });
};
