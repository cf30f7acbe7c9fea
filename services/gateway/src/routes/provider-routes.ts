import {
  DeleteProvider,
  GetProvider,
  Provider,
  ProviderView,
  PutProvider,
  providerSettings,
  TestedPush,
  TestProvider,
  testPushOf,
} from "@herald/contracts";
import { z } from "zod";
import { admin, operator, viewer } from "../auth/caller.ts";
import { noContent, ok } from "../http/reply.ts";
import { defineRoute, type Route } from "../http/route.ts";
import { projectParam } from "./path-params.ts";

const titles = { apns: "APNs", fcm: "FCM", webpush: "Web Push" } as const satisfies Record<Provider, string>;
const operations = { apns: "Apns", fcm: "Fcm", webpush: "WebPush" } as const satisfies Record<Provider, string>;

const OneProvider = z.object({ data: ProviderView });

/** The routes of one provider's settings. Dispatch stores them and knows no projects, so the gateway checks the project first. */
const routesOf = (provider: Provider): Route[] => {
  const common = {
    path: `/admin/v1/projects/{id}/providers/${provider}`,
    tag: "Administration",
    params: { id: projectParam },
  } as const;
  const name = titles[provider];
  return [
    defineRoute({
      ...common,
      access: admin,
      method: "put",
      operationId: `put${operations[provider]}Provider`,
      summary: `Set a project's ${name} settings`,
      description: "Herald refuses a key that does not parse. Responses never contain secrets.",
      body: providerSettings[provider] as z.ZodType,
      responses: { 200: { description: "The settings, without secrets", schema: OneProvider } },
      errors: ["project-not-found"],
      handle: async ({ sendRequest, projects }, { params, body }) => {
        const { id: projectId } = await projects.settings(params.id);
        return ok({ data: await sendRequest(PutProvider, { projectId, provider, settings: body }) });
      },
    }),
    defineRoute({
      ...common,
      access: viewer,
      method: "get",
      operationId: `get${operations[provider]}Provider`,
      summary: `Read a project's ${name} settings`,
      responses: { 200: { description: "The settings, without secrets", schema: OneProvider } },
      errors: ["project-not-found", "provider-not-found"],
      handle: async ({ sendRequest, projects }, { params }) => {
        const { id: projectId } = await projects.settings(params.id);
        return ok({ data: await sendRequest(GetProvider, { projectId, provider }) });
      },
    }),
    defineRoute({
      ...common,
      access: admin,
      method: "delete",
      operationId: `delete${operations[provider]}Provider`,
      summary: `Delete a project's ${name} settings`,
      responses: { 204: { description: "The settings are deleted" } },
      errors: ["project-not-found", "provider-not-found"],
      handle: async ({ sendRequest, projects }, { params }) => {
        const { id: projectId } = await projects.settings(params.id);
        await sendRequest(DeleteProvider, { projectId, provider });
        return noContent();
      },
    }),
    defineRoute({
      ...common,
      access: operator,
      path: `${common.path}/test`,
      method: "post",
      operationId: `test${operations[provider]}Provider`,
      summary: `Send one test push through ${name}`,
      description:
        "Sends one push to the token at once and returns the provider's response. It works while the provider is paused, and appears in no list and no statistics.",
      body: testPushOf(provider),
      responses: { 200: { description: "The provider's response", schema: z.object({ data: TestedPush }) } },
      errors: ["project-not-found", "provider-not-found"],
      handle: async ({ sendRequest, projects }, { params, body }) => {
        const { id: projectId } = await projects.settings(params.id);
        return ok({ data: await sendRequest(TestProvider, { projectId, provider, push: body }) });
      },
    }),
  ];
};

export const providerRoutes = Provider.options.flatMap(routesOf);
