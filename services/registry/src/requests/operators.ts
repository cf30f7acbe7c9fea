import { handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeOperatorRequest,
  CreateOperatorRequest,
  DeleteOperator,
  GetOperator,
  ListOperators,
  type Operator,
  RotateOperatorToken,
  SignOutOperator,
} from "@herald/contracts";
import { existing, notFound } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { OperatorDocument } from "../stores/operator-store.ts";

const operatorView = ({ _id, name, role, projects, createdAt, ...last }: OperatorDocument): Operator => ({
  id: _id,
  name,
  role,
  projects: [...projects],
  created_at: createdAt.toISOString(),
  ...(last.rotatedAt && { rotated_at: last.rotatedAt.toISOString() }),
  ...(last.signedOutAt && { signed_out_at: last.signedOutAt.toISOString() }),
});

const operatorNotFound = () => notFound("operator-not-found", "operator");

export const handleOperatorRequests = ({ bus, operators, operatorReplication, now }: Deps): RequestListener[] => {
  /** Replicates a change to the gateways before the reply. */
  const replicated = async (changing: Promise<OperatorDocument | null>): Promise<Operator> => {
    const operator = existing(await changing, operatorNotFound);
    await operatorReplication.replicate(operator);
    return operatorView(operator);
  };

  return [
    handleRequest(bus, CreateOperatorRequest, ({ operatorId, ...fields }) =>
      replicated(operators.save({ _id: operatorId, ...fields, createdAt: now() })),
    ),

    handleRequest(bus, ListOperators, async ({ page }) => mapPage(await operators.list(page), operatorView)),

    handleRequest(bus, GetOperator, async ({ operatorId }) =>
      operatorView(existing(await operators.find(operatorId), operatorNotFound)),
    ),

    handleRequest(bus, ChangeOperatorRequest, ({ operatorId, ...fields }) =>
      replicated(operators.change(operatorId, fields)),
    ),

    handleRequest(bus, RotateOperatorToken, ({ operatorId, tokenHash }) =>
      replicated(operators.replaceToken(operatorId, tokenHash, now())),
    ),

    handleRequest(bus, SignOutOperator, ({ operatorId }) =>
      replicated(operators.change(operatorId, { signedOutAt: now() })),
    ),

    handleRequest(bus, DeleteOperator, async ({ operatorId }) => {
      await replicated(operators.markDeleted(operatorId, now()));
      return {};
    }),
  ];
};
