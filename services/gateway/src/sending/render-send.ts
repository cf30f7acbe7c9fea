import { isTemplated, type ProjectId, type SendNotification } from "@herald/contracts";
import { type Fault, HeraldError } from "@herald/kit";
import { personalize, type RenderedSend } from "./personalize.ts";
import { renderNotification, type TemplateDirectory } from "./templates.ts";

const notPublished = (name: string): Fault => ({
  name: "notification.template",
  detail: `the project has no published template \`${name}\``,
  code: "template-not-found",
});

/** A notification with its final texts, or with texts for each recipient. Throws validation-failed, and bus-unavailable when it names a template. */
export const renderSend = async (
  templates: Pick<TemplateDirectory, "find">,
  projectId: ProjectId,
  notification: SendNotification["notification"],
): Promise<RenderedSend> => {
  const { template: named, variables, locale, targets = [], recipients, dry_run: _, ...own } = notification;
  if (!isTemplated(notification)) return { notification: { ...own, targets } };
  const found = named === undefined ? undefined : await templates.find(projectId, named);
  if (named !== undefined && found === undefined) throw new HeraldError("validation-failed", [notPublished(named)]);
  const name = "notification";
  const { version, compiled: template } = found ?? {};
  const rendering = { template, version, variables, own, locale, name };
  return recipients === undefined
    ? { notification: { ...renderNotification(rendering), targets } }
    : personalize(rendering, recipients);
};
