import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { Operator, OperatorRole } from "../http/v1/operators.ts";
import { isDeepPage, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { OperatorId } from "../ids.ts";

const operator = { operatorId: OperatorId };
const tokenHash = z.string();

/** The gateway makes the id and the token. A repeated request replaces the token that no caller received. */
export const CreateOperatorRequest = defineRequest(
  "registry.operators.create",
  z.object({ ...operator, name: z.string(), role: OperatorRole, tokenHash }),
  Operator,
);
export const ListOperators = defineRequest(
  "registry.operators.list",
  z.object({ page: PageRequest }),
  pageOf(Operator),
  isDeepPage,
);
export const GetOperator = defineRequest("registry.operators.get", z.object(operator), Operator);
export const ChangeOperatorRequest = defineRequest(
  "registry.operators.change",
  z.object({ ...operator, name: z.string().optional(), role: OperatorRole.optional() }),
  Operator,
);
/** Replaces the token: the earlier one and its sessions end. */
export const RotateOperatorToken = defineRequest(
  "registry.operators.rotate",
  z.object({ ...operator, tokenHash }),
  Operator,
);
export const DeleteOperator = defineRequest("registry.operators.delete", z.object(operator), z.object({}));
