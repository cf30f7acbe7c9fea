import type { createDocument } from "zod-openapi";
import { exampleOf, type Schema } from "./example-of.ts";

type Document = ReturnType<typeof createDocument>;
type Media = { schema?: Schema; example?: unknown };
type Content = { content?: Record<string, Media> };
type Operation = { requestBody?: Content; responses?: Record<string, Content> };

/** Adds an example to every body and answer that has none, made from its schema. Changes the document that it is given. */
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
  // What Herald posts to a webhook is shown whole.
  visit(document.webhooks as Document["paths"], true);
  return document;
};
