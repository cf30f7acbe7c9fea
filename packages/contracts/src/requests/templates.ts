import { z } from "zod";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { Author, PublishedVersion, Template, TemplateContent, TemplateSummary } from "../http/v1/templates.ts";
import { ProjectId } from "../ids.ts";
import { TemplateName } from "../template-version.ts";

const project = { projectId: ProjectId };
const template = { ...project, name: TemplateName };

export const templateRequests = defineRequests("registry.templates", {
  /** Stores the draft of a template. */
  put: oneRequest(
    { ...template, content: TemplateContent, author: Author },
    z.object({ template: Template, created: z.boolean() }),
  ),
  /** `version` absent: the draft. Heavy, because a content has up to 32 KiB. */
  get: oneRequest({ ...template, version: z.number().int().min(1).optional() }, Template, () => true),
  list: listRequest(project, TemplateSummary),
  versions: listRequest(template, PublishedVersion),
  /** Publishes the draft as the next version, unless the last version has the same content. */
  publish: oneRequest({ ...template, author: Author }, z.object({ version: z.number().int().min(1) })),
  delete: oneRequest(template, z.object({})),
});
