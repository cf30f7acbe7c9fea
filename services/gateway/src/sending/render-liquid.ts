import type { ProjectId, SendNotification } from "@herald/contracts";
import { type Fault, HeraldError } from "@herald/kit";
import { personalize, type RenderedSend, renderLater } from "./personalize.ts";
import { compileNotification, renderNotification, type TemplateDirectory } from "./templates.ts";

const notPublished = (name: string): Fault => ({
  name: "notification.template",
  detail: `the project has no published template \`${name}\``,
  code: "template-not-found",
});

/**
 * A notification whose texts are Liquid, with its final texts, or with texts for each recipient. Throws validation-failed, and
 * bus-unavailable when it names a template.
 */
export const renderLiquid = async (
  templates: Pick<TemplateDirectory, "find">,
  projectId: ProjectId,
  {
    template: named,
    variables,
    locale,
    targets = [],
    recipients,
    dry_run: _,
    ...own
  }: SendNotification["notification"],
): Promise<RenderedSend> => {
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
