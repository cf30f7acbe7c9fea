import {
  ChangeOperator,
  ChangeOperatorRequest,
  CreateOperator,
  CreateOperatorRequest,
  DeleteOperator,
  GetOperator,
  ListOperators,
  newOperatorId,
  newOperatorToken,
  Operator,
  type OperatorId,
  pageOf,
  pageQuery,
  RotateOperatorToken,
  secretHash,
} from "@herald/contracts";
import { z } from "zod";
import { admin, viewer } from "../auth/caller.ts";
import { pageReply, pageRequest } from "../http/page-reply.ts";
import { created, noContent, ok } from "../http/reply.ts";
import { defineRoute } from "../http/route.ts";
import { operatorParam } from "./path-params.ts";

const tag = "Administration";
const OneOperator = z.object({ data: Operator });
const WithToken = z.object({
  data: Operator,
  token: z
    .string()
    .optional()
    .meta({ description: "The operator's token; absent when a response is replayed", examples: ["hop_…"] }),
});

const createOperator = defineRoute({
  method: "post",
  path: "/admin/v1/operators",
  operationId: "createOperator",
  tag,
  summary: "Create an operator",
  description:
    "Only this response contains the operator's token. A `viewer` reads, an `operator` also sends, replays and changes devices and topics, an `admin` may do everything.",
  access: admin,
  body: CreateOperator,
  responses: { 201: { description: "The operator and its token", schema: WithToken } },
  handle: async ({ sendRequest }, { body: { operator }, idempotent }) =>
    idempotent({
      newId: newOperatorId,
      perform: async ({ id }) => {
        // An interrupted attempt made the operator with a token that no caller received; this one replaces it.
        const token = newOperatorToken();
        const data = await sendRequest(CreateOperatorRequest, {
          operatorId: id as OperatorId,
          ...operator,
          tokenHash: secretHash(token),
        });
        return created({ data, token });
      },
    }),
});

const listOperators = defineRoute({
  method: "get",
  path: "/admin/v1/operators",
  operationId: "listOperators",
  tag,
  summary: "List operators, oldest first",
  access: viewer,
  query: z.strictObject(pageQuery),
  responses: { 200: { description: "A page of operators, without their tokens", schema: pageOf(Operator) } },
  handle: async ({ sendRequest }, request) =>
    pageReply(request, await sendRequest(ListOperators, { page: pageRequest(request.query) })),
});

const getOperator = defineRoute({
  method: "get",
  path: "/admin/v1/operators/{id}",
  operationId: "getOperator",
  tag,
  summary: "Read an operator",
  access: viewer,
  params: { id: operatorParam },
  responses: { 200: { description: "The operator", schema: OneOperator } },
  handle: async ({ sendRequest }, { params }) =>
    ok({ data: await sendRequest(GetOperator, { operatorId: params.id }) }),
});

const changeOperator = defineRoute({
  method: "patch",
  path: "/admin/v1/operators/{id}",
  operationId: "changeOperator",
  tag,
  summary: "Change an operator's name or role",
  description: "All gateways apply a changed role within a second, also to sessions in progress.",
  access: admin,
  params: { id: operatorParam },
  body: ChangeOperator,
  responses: { 200: { description: "The changed operator", schema: OneOperator } },
  handle: async ({ sendRequest }, { params, body: { operator } }) => {
    const { name, role } = operator;
    const fields = { ...(name !== undefined && { name }), ...(role !== undefined && { role }) };
    return ok({ data: await sendRequest(ChangeOperatorRequest, { operatorId: params.id, ...fields }) });
  },
});

const rotateOperatorToken = defineRoute({
  method: "post",
  path: "/admin/v1/operators/{id}/token",
  operationId: "rotateOperatorToken",
  tag,
  summary: "Replace an operator's token",
  description:
    "Only this response contains the new token. All gateways refuse the earlier one, and end its sessions, within a second.",
  access: admin,
  params: { id: operatorParam },
  responses: { 201: { description: "The operator and its new token", schema: WithToken } },
  handle: async ({ sendRequest }, { params, idempotent }) =>
    idempotent({
      // An interrupted attempt left a token that no caller received; a repeat replaces it.
      newId: () => "",
      perform: async () => {
        const token = newOperatorToken();
        const operator = { operatorId: params.id, tokenHash: secretHash(token) };
        return created({ data: await sendRequest(RotateOperatorToken, operator), token });
      },
    }),
});

const deleteOperator = defineRoute({
  method: "delete",
  path: "/admin/v1/operators/{id}",
  operationId: "deleteOperator",
  tag,
  summary: "Delete an operator",
  description: "All gateways refuse the operator's token, and end its sessions, within a second.",
  access: admin,
  params: { id: operatorParam },
  responses: { 204: { description: "The operator is deleted" } },
  handle: async ({ sendRequest }, { params }) => {
    await sendRequest(DeleteOperator, { operatorId: params.id });
    return noContent();
  },
});

export const operatorRoutes = [
  createOperator,
  listOperators,
  getOperator,
  changeOperator,
  rotateOperatorToken,
  deleteOperator,
];
