import {
  deviceRequests,
  newNotificationId,
  PreviewTemplate,
  PutTemplate,
  Template,
  TemplatePreview,
  TemplateQuery,
  TemplateVersion,
  templateRequests,
} from "@herald/contracts";
import { authorOf, project } from "../auth/caller.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { checkTemplate, previewTemplate } from "../sending/preview-template.ts";

const OneTemplate = dataOf(Template);

export const templateRoutes = [
  forwardRoute("listTemplates", "get /api/v1/templates", {
    summary: "List templates, sorted by name",
    access: project("read"),
    forward: templateRequests.list,
    response: "A page of templates",
  }),
  defineRoute("getTemplate", "get /api/v1/templates/{name}", {
    summary: "Read a template: its draft, or a version",
    access: project("read"),
    query: TemplateQuery,
    responses: { 200: { description: "The template", schema: OneTemplate } },
    handle: async ({ sendRequest }, { caller: { projectId }, params: { name }, query: { version = "draft" } }) => {
      const which = version === "draft" ? {} : { version: Number(version) };
      return ok(await sendRequest(templateRequests.get, { projectId, name, ...which }));
    },
  }),
  defineRoute("putTemplate", "put /api/v1/templates/{name}", {
    summary: "Store the draft of a template",
    description:
      "Creates the template, or replaces its draft; sends use it once it is published. A problem in a text names the field, the line and the column. A project has at most 200 templates.",
    access: project("templates"),
    body: PutTemplate,
    responses: {
      200: { description: "The changed template", schema: OneTemplate },
      201: { description: "The new template", schema: OneTemplate },
    },
    errors: ["template-limit"],
    handle: async ({ sendRequest }, { caller, params, body: { template: content } }) => {
      checkTemplate(content);
      const { projectId } = caller;
      const asked = { projectId, name: params.name, content, author: authorOf(caller) };
      const { template, created: isNew } = await sendRequest(templateRequests.put, asked);
      return isNew ? created(template) : ok(template);
    },
  }),
  defineRoute("deleteTemplate", "delete /api/v1/templates/{name}", {
    summary: "Delete a template and its versions",
    description:
      "Notifications that were accepted keep their texts. All gateways refuse sends that name it within a second.",
    access: project("templates"),
    responses: { 204: { description: "The template is deleted" } },
    handle: async ({ sendRequest, templates }, { caller: { projectId }, params: { name } }) => {
      await sendRequest(templateRequests.delete, { projectId, name });
      templates.forget(projectId, name);
      return noContent();
    },
  }),
  defineRoute("publishTemplate", "post /api/v1/templates/{name}/publish", {
    summary: "Publish the draft of a template",
    description:
      "The draft becomes the next version, which never changes; all gateways send it within a second. If the last version has the same content, it stays the last version.",
    access: project("templates"),
    responses: {
      200: { description: "The published version", schema: dataOf(TemplateVersion.pick({ version: true })) },
    },
    errors: ["template-not-found", "template-limit"],
    handle: async ({ sendRequest, templates }, { caller, params: { name }, idempotent }) =>
      idempotent({
        perform: async () => {
          const { projectId } = caller;
          const published = await sendRequest(templateRequests.publish, { projectId, name, author: authorOf(caller) });
          templates.forget(projectId, name);
          return ok(published);
        },
      }),
  }),
  forwardRoute("listTemplateVersions", "get /api/v1/templates/{name}/versions", {
    summary: "List the versions of a template, newest first",
    description: "The last hundred.",
    access: project("read"),
    forward: templateRequests.versions,
    response: "A page of versions",
  }),
  defineRoute("previewTemplate", "post /api/v1/templates/{name}/preview", {
    summary: "Render a template with values",
    description:
      "The payload of each platform, its size, and why its provider would refuse it. Shows the draft unless `version` names a version; `content` shows a template that is not stored. Sends and stores nothing, and counts as a dry run.",
    access: project("read"),
    body: PreviewTemplate,
    responses: { 200: { description: "The payloads", schema: dataOf(TemplatePreview) } },
    errors: ["device-not-found", "quota-exceeded"],
    handle: async (deps, { caller: { projectId }, params: { name }, body: { preview } }) => {
      await deps.limits.countDryRun(projectId);
      const { version, variables, locale, device: deviceId } = preview;
      const which = version === undefined || version === "draft" ? {} : { version };
      const content =
        preview.content ?? (await deps.sendRequest(templateRequests.get, { projectId, name, ...which })).content;
      const device = deviceId && (await deps.sendRequest(deviceRequests.get, { projectId, deviceId }));
      const at = deps.now();
      const origin = { projectId, id: newNotificationId(at), at };
      const shown = { variables, device, locale, openTokenBytes: deps.openTokens.length };
      return ok(previewTemplate(content, { ...origin, ...shown }));
    },
  }),
];
