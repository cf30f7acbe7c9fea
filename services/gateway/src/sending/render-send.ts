import { isTemplated, ofDevice, type ProjectId, type SendNotification } from "@herald/contracts";
import { type Fault, HeraldError } from "@herald/kit";
import type { ProjectDirectory } from "../auth/directories.ts";
import { personalize, type RenderedSend, renderLater } from "./personalize.ts";
import { compileNotification, renderNotification, type TemplateDirectory } from "./templates.ts";

const notPublished = (name: string): Fault => ({
  name: "notification.template",
  detail: `the project has no published template \`${name}\``,
  code: "template-not-found",
});

export type RenderDeps = {
  readonly templates: Pick<TemplateDirectory, "find">;
  readonly projects: Pick<ProjectDirectory, "receipts" | "defaultTimeZone">;
};

/**
 * A notification with its final texts, or with texts for each recipient. Throws validation-failed, and bus-unavailable when it names a
 * template.
 */
export const renderSend = async (
  { templates, projects }: RenderDeps,
  projectId: ProjectId,
  sent: SendNotification["notification"],
): Promise<RenderedSend> => {
  const { notification, ...personal } = await renderTextsOf(templates, projectId, sent);
  const receipts = projects.receipts(projectId);
  const isShown = !notification.silent && notification.push_type === undefined;
  const asks = receipts && notification.receipts === undefined && isShown;
  const zone = notification.time_zone === ofDevice ? projects.defaultTimeZone(projectId) : undefined;
  return { notification: asks ? { ...notification, receipts } : notification, ...personal, ...(zone && { zone }) };
};

const renderTextsOf = async (
  templates: RenderDeps["templates"],
  projectId: ProjectId,
  notification: SendNotification["notification"],
): Promise<RenderedSend> => {
  const { template: named, variables, locale, targets = [], recipients, dry_run: _, ...own } = notification;
  if (!isTemplated(notification)) return { notification: { ...own, targets } };
  const found = named === undefined ? undefined : await templates.find(projectId, named);
  if (named !== undefined && found === undefined) throw new HeraldError("validation-failed", [notPublished(named)]);
  const { version, compiled: template } = found ?? {};
  const rendering = { template, version, variables, own, locale, name: "notification" };
  if (recipients !== undefined) return personalize(rendering, recipients);
  const layers = compileNotification(rendering);
  const { devicePaths, user } = layers.shown;
  return devicePaths.length > 0 || user
    ? renderLater(rendering, layers, { targets })
    : { notification: { ...renderNotification(rendering, layers), targets } };
};
