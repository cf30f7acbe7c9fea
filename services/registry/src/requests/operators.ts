import { handleRequest, type RequestListener } from "@herald/bus";
import {
  ChangeOperatorRequest,
  CreateOperatorRequest,
  DeleteOperator,
  GetOperator,
  ListOperators,
  RotateOperatorToken,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { operatorView } from "./views.ts";

const operatorNotFound = (): HeraldError => new HeraldError("operator-not-found", "operator: there is none of this id");

/** Changes are replicated to the gateways before the reply. */
export const handleOperatorRequests = ({ bus, operators, operatorReplication, now }: Deps): RequestListener[] => [
  handleRequest(bus, CreateOperatorRequest, async ({ operatorId, ...fields }) => {
    const operator = await operators.save({ _id: operatorId, ...fields, createdAt: now() });
    if (!operator) throw operatorNotFound();
    await operatorReplication.replicate(operator);
    return operatorView(operator);
  }),

  handleRequest(bus, ListOperators, async ({ page }) => {
    const found = await operators.list(page);
    return { ...found, data: found.data.map(operatorView) };
  }),

  handleRequest(bus, GetOperator, async ({ operatorId }) => {
    const operator = await operators.find(operatorId);
    if (!operator) throw operatorNotFound();
    return operatorView(operator);
  }),

  handleRequest(bus, ChangeOperatorRequest, async ({ operatorId, name, role }) => {
    const operator = await operators.change(operatorId, {
      ...(name !== undefined && { name }),
      ...(role !== undefined && { role }),
    });
    if (!operator) throw operatorNotFound();
    await operatorReplication.replicate(operator);
    return operatorView(operator);
  }),

  handleRequest(bus, RotateOperatorToken, async ({ operatorId, tokenHash }) => {
    const operator = await operators.replaceToken(operatorId, tokenHash, now());
    if (!operator) throw operatorNotFound();
    await operatorReplication.replicate(operator);
    return operatorView(operator);
  }),

  handleRequest(bus, DeleteOperator, async ({ operatorId }) => {
    const at = now();
    const operator = await operators.markDeleted(operatorId, at);
    if (!operator) throw operatorNotFound();
    await operatorReplication.replicate({ ...operator, deletedAt: at });
    return {};
  }),
];
