import { z } from "zod";
import { defineList, defineRequest } from "../envelope.ts";
import { Author, PublishedVersion, Template, TemplateContent, TemplateSummary } from "../http/v1/templates.ts";
import { ProjectId } from "../ids.ts";
import { TemplateName } from "../template-version.ts";

const project = { projectId: ProjectId };
const template = { ...project, name: TemplateName };

/** Stores the draft of a template. */
export const PutTemplateRequest = defineRequest(
  "registry.templates.put",
  { ...template, content: TemplateContent, author: Author },
  z.object({ template: Template, created: z.boolean() }),
);
/** `version` absent: the draft. Heavy, because a content has up to 32 KiB. */
export const GetTemplate = defineRequest(
  "registry.templates.get",
  { ...template, version: z.number().int().min(1).optional() },
  Template,
  () => true,
);
export const ListTemplates = defineList("registry.templates.list", project, TemplateSummary);
export const ListTemplateVersions = defineList("registry.templates.versions", template, PublishedVersion);
/** Publishes the draft as the next version, unless the last version has the same content. */
export const PublishTemplate = defineRequest(
  "registry.templates.publish",
  { ...template, author: Author },
  z.object({ version: z.number().int().min(1) }),
);
export const DeleteTemplate = defineRequest("registry.templates.delete", template, z.object({}));
