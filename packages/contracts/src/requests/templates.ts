import { z } from "zod";
import { defineRequests, list, request } from "../envelope.ts";
import { Author, PublishedVersion, Template, TemplateContent, TemplateSummary } from "../http/v1/templates.ts";
import { ProjectId } from "../ids.ts";
import { TemplateName } from "../template-version.ts";

const project = { projectId: ProjectId };
const template = { ...project, name: TemplateName };

export const templateRequests = defineRequests("registry.templates", {
  /** Stores the draft of a template. */
  put: request(
    { ...template, content: TemplateContent, author: Author },
    z.object({ template: Template, created: z.boolean() }),
  ),
  /** `version` absent: the draft. Heavy, because a content has up to 32 KiB. */
  get: request({ ...template, version: z.number().int().min(1).optional() }, Template, () => true),
  list: list(project, TemplateSummary),
  versions: list(template, PublishedVersion),
  /** Publishes the draft as the next version, unless the last version has the same content. */
  publish: request({ ...template, author: Author }, z.object({ version: z.number().int().min(1) })),
  delete: request(template, z.object({})),
});
