import {
  type Device,
  type NotificationId,
  type ProjectId,
  RenderedContent,
  type TemplateContent,
  type TemplatePreview,
  type Variables,
} from "@herald/contracts";
import { HeraldError, parseBody } from "@herald/kit";
import { mapTexts, weighPayloads } from "@herald/payload";
import { deviceValues, localeOf, placeholderValues } from "@herald/rules";
import { sendCommand } from "./accept-notification.ts";
import { placeholder } from "./placeholder.ts";
import { renderSamples } from "./render-samples.ts";
import { compileNotification, compileTemplate, renderNotification } from "./templates.ts";

const compile = (content: TemplateContent, name: string) => {
  const compiled = compileTemplate(content);
  if (compiled.problems.length > 0)
    throw new HeraldError(
      "validation-failed",
      compiled.problems.map(({ path, message }) => `${[name, ...path].join(".")}: ${message}`),
    );
  return compiled;
};

/** Throws validation-failed for a template that no send could use. */
export const checkTemplate = (content: TemplateContent): void => {
  const compiled = compile(content, "template");
  const likely = mapTexts(compiled.content, (text, place) => (typeof text === "string" ? text : placeholder(place)));
  parseBody(RenderedContent, likely, { prefix: "template" });
};

type Preview = {
  readonly projectId: ProjectId;
  readonly id: NotificationId;
  readonly at: Date;
  readonly variables: Variables | undefined;
  /** Shows its values, in its language unless `locale` is given. Undefined: placeholders stand for them. */
  readonly device: Device | undefined;
  readonly locale: string | undefined;
  readonly openTokenBytes: number;
};

const platforms = ["ios", "android", "web"] as const;

const valuesOfDevice = (device: Device | undefined, paths: readonly string[]) => {
  if (device === undefined) return placeholderValues(paths);
  const { user_id: id } = device;
  return { device: deviceValues(device, paths), ...(id !== null && { user: { id } }) };
};

/** Renders a template with values for each platform. Throws validation-failed with all problems of its texts and values. */
export const previewTemplate = (
  content: TemplateContent,
  { variables, device, locale: chosen, openTokenBytes, ...origin }: Preview,
): TemplatePreview => {
  const template = compile(content, "preview.content");
  const rendering = { template, variables, own: {}, locale: undefined, name: "preview" };
  const layers = compileNotification(rendering);
  const values = { ...valuesOfDevice(device, layers.shown.devicePaths), ...layers.values };
  const rendered = renderNotification(rendering, { ...layers, values });
  const locale = chosen ?? (device && localeOf(device.identifiers));
  const command = sendCommand({ ...origin, notification: { ...rendered, targets: ["all"] } });
  const payloads = renderSamples(command, platforms, locale);
  const weights = weighPayloads(command.content, command, openTokenBytes, locale);
  const preview = (name: keyof typeof payloads) => {
    const { bytes, max } = weights[name] ?? { bytes: 0, max: 0 };
    const problems = bytes > max ? [`renders to ${bytes} bytes, at most ${max} fit: shorten body or data`] : [];
    return { payload: payloads[name] as Record<string, unknown>, bytes, problems };
  };
  return {
    ...{ ios: preview("ios"), android: preview("android"), web: preview("web") },
    ...(payloads.drawn !== undefined && { drawn: preview("drawn") }),
  };
};
