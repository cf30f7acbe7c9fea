import {
  ChangeOperator,
  CreateOperator,
  newOperatorId,
  newOperatorToken,
  Operator,
  operatorRequests,
  type ProjectGrant,
  SystemStatus,
  secretHash,
} from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import { adminOnly, viewer } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { created, ok } from "../http/reply.ts";
import { dataOf, defineRoute, shownOnce } from "../http/route.ts";

const OneOperator = dataOf(Operator);
const WithToken = OneOperator.extend({
  token: shownOnce("The operator's token; absent when a response is replayed").meta({ examples: ["hop_…"] }),
});

/** Checks that the projects of grants exist. Throws validation-failed. */
const checkGrants = async (projects: RouteDeps["projects"], grants: readonly ProjectGrant[] = []): Promise<void> => {
  const found = await Promise.all(
    grants.map(({ id }) =>
      projects.settings(id).catch((error: unknown) => {
        if (hasCode(error, "project-not-found")) return undefined;
        throw error;
      }),
    ),
  );
  const missing = found.flatMap((project, at) => (project ? [] : [`operator.projects.${at}.id: project not found`]));
  if (missing.length > 0) throw new HeraldError("validation-failed", missing);
};

/** The operator with what its groups add. */
const shown = (operator: Operator, _request: unknown, { groupsFile }: Pick<RouteDeps, "groupsFile">): Operator => {
  const { role, projects, groups } = operator;
  const effective = groupsFile.effectiveOf({ role, projects }, groups);
  return {
    ...operator,
    effective: { role: effective.role, projects: [...effective.projects], groups: [...effective.groups] },
  };
};

export const operatorRoutes = [
  defineRoute("createOperator", "post /admin/v1/operators", {
    summary: "Create an operator",
    description:
      "Only this response contains the operator's token. A `viewer` reads, an `operator` also sends, replays and changes devices and topics, an `admin` may do everything; a `member` has only the roles of `projects`. In a project the higher of both roles counts. A grant `admin` covers the project's settings, tokens, providers, keys, webhooks and audit rows; not its limits, its deletion, or operators.",
    access: adminOnly,
    body: CreateOperator,
    responses: { 201: { description: "The operator and its token", schema: WithToken } },
    handle: async ({ sendRequest, projects }, { body: { operator }, idempotent }) =>
      idempotent({
        newId: newOperatorId,
        perform: async ({ id }) => {
          await checkGrants(projects, operator.projects);
          // An interrupted attempt created the operator with a token that no caller received; this token replaces it.
          const token = newOperatorToken();
          const asked = { operatorId: id, projects: [], ...operator, tokenHash: secretHash(token) };
          return created(await sendRequest(operatorRequests.create, asked), { token });
        },
      }),
  }),
  forwardRoute("listOperators", "get /admin/v1/operators", {
    summary: "List operators, oldest first",
    access: viewer,
    forward: operatorRequests.list,
    show: shown,
    response: "A page of operators, without their tokens",
  }),
  forwardRoute("getOperator", "get /admin/v1/operators/{id}", {
    summary: "Read an operator",
    access: viewer,
    forward: operatorRequests.get,
    show: shown,
    response: "The operator",
  }),
  forwardRoute("changeOperator", "patch /admin/v1/operators/{id}", {
    summary: "Change an operator's name, role or grants",
    description: "All gateways apply changed roles and grants within a second, also to sessions in progress.",
    access: adminOnly,
    body: ChangeOperator,
    forward: operatorRequests.change,
    add: async ({ body: { operator } }, { projects }) => {
      await checkGrants(projects, operator.projects);
      return operator;
    },
    show: shown,
    response: "The changed operator",
  }),
  defineRoute("rotateOperatorToken", "post /admin/v1/operators/{id}/token", {
    summary: "Replace an operator's token",
    description:
      "Only this response contains the new token. All gateways refuse the earlier one, and end its sessions, within a second.",
    access: adminOnly,
    responses: { 201: { description: "The operator and its new token", schema: WithToken } },
    handle: async ({ sendRequest }, { params, idempotent }) =>
      idempotent({
        // An interrupted attempt left a token that no caller received; the repeat's token replaces it.
        perform: async () => {
          const token = newOperatorToken();
          const operator = { operatorId: params.id, tokenHash: secretHash(token) };
          return created(await sendRequest(operatorRequests.rotate, operator), { token });
        },
      }),
  }),
  forwardRoute("signOutOperator", "post /admin/v1/operators/{id}/sign-out", {
    summary: "Sign an operator out everywhere",
    description:
      "All gateways end the operator's sessions and sign-in codes within a second. The token stays valid; replace it if it leaked.",
    access: adminOnly,
    forward: operatorRequests.signOut,
    status: 204,
    response: "The sessions have ended",
  }),
  forwardRoute("deleteOperator", "delete /admin/v1/operators/{id}", {
    summary: "Delete an operator",
    description: "All gateways refuse the operator's token, and end its sessions, within a second.",
    access: adminOnly,
    forward: operatorRequests.delete,
    response: "The operator is deleted",
  }),
];

export const getStatus = defineRoute("getStatus", "get /admin/v1/status", {
  summary: "Read the state of the system",
  description:
    "Services with their replicas, versions and readiness; streams, durables, providers that need a person, and dead letters. Each process reports every five seconds; one that stops reporting without a stop is listed as `not_answering` for ten minutes. Answered from memory, so it is fast even when something is unavailable.",
  access: viewer,
  responses: { 200: { description: "The state of the system", schema: dataOf(SystemStatus) } },
  handle: async ({ status }) => ok(status.read()),
});
