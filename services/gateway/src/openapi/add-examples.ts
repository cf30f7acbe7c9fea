import type { createDocument } from "zod-openapi";
import { exampleOf, type Schema } from "./example-of.ts";

type Document = ReturnType<typeof createDocument>;
type Media = { schema?: Schema; example?: unknown };
type Content = { content?: Record<string, Media> };
type Operation = { requestBody?: Content; responses?: Record<string, Content> };

/** Adds an example, made from the schema, to every request and response body without one. Changes the given document. */
export const addExamples = (document: Document): Document => {
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  const resolve = (reference: string): Schema => schemas[reference.slice("#/components/schemas/".length)] ?? {};
  const add = ({ content = {} }: Content, complete: boolean) => {
    for (const media of Object.values(content))
      if (media.schema !== undefined) media.example ??= exampleOf(media.schema, { resolve, complete });
  };
  const visit = (paths: Document["paths"], received: boolean) => {
    for (const methods of Object.values(paths ?? {}))
      for (const { requestBody = {}, responses = {} } of Object.values(methods) as Operation[]) {
        add(requestBody, received);
        for (const response of Object.values(responses)) add(response, true);
      }
  };
  visit(document.paths, false);
  // Webhook messages are shown with all their fields.
  visit(document.webhooks as Document["paths"], true);
  return document;
};
