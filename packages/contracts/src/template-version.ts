import { z } from "zod";
import { named } from "./named.ts";

export const TemplateName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "must be a slug: 1 to 64 of `a-z`, `0-9`, `_` and `-`, such as `order-shipped`")
  .meta({ id: "TemplateName", examples: ["order-shipped"] });

/** A published template, which never changes. */
export const TemplateVersion = named("TemplateVersion", {
  name: z.string().meta({ examples: ["order-shipped"] }),
  version: z.number().int().min(1),
});
export type TemplateVersion = z.infer<typeof TemplateVersion>;
