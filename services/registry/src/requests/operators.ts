import { handleRequest, type RequestListener } from "@herald/bus";
import { identityHash, newOperatorId, type Operator, operatorRequests } from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { mapPage } from "@herald/mongo";
import type { z } from "zod";
import type { Deps } from "../deps.ts";
import type { OperatorDocument } from "../stores/operator-store.ts";

const operatorView = ({ _id, name, role, projects, createdAt, ...last }: OperatorDocument): Operator => ({
  id: _id,
  name,
  role,
  projects: [...projects],
  ...(last.email && { email: last.email }),
  ...(last.groups && { groups: [...last.groups] }),
  created_at: createdAt.toISOString(),
  ...(last.rotatedAt && { rotated_at: last.rotatedAt.toISOString() }),
  ...(last.signedOutAt && { signed_out_at: last.signedOutAt.toISOString() }),
});

type SignInRequest = z.infer<typeof operatorRequests.signIn.request>;

const operatorNotFound = () => notFound("operator-not-found", "operator");

type OperatorDeps = Pick<Deps, "bus" | "now" | "operatorReplication" | "operators">;

export const handleOperatorRequests = (deps: OperatorDeps): RequestListener[] => {
  const { bus, operators, operatorReplication, now } = deps;
  /** Replicates a change to the gateways before the reply. */
  const replicated = async (changing: Promise<OperatorDocument | null>): Promise<Operator> => {
    const operator = existing(await changing, operatorNotFound);
    await operatorReplication.replicate(operator);
    return operatorView(operator);
  };

  const signIn = async ({ issuer, subject, everyone, ...person }: SignInRequest): Promise<Operator> => {
    const identity = { identityHash: identityHash(issuer, subject), ...person, email: person.email };
    const mayEnter = everyone || person.groups.length > 0;
    const refusal = new HeraldError(
      "sign-in-not-permitted",
      "sign-in: no group of this person is in the groups file, and no admin of Herald has granted a role",
    );
    for (;;) {
      const known = await operators.findByIdentity(identity.identityHash);
      // Completes a deletion that was interrupted, or is under way.
      if (known?.deletedAt) await operatorReplication.replicate(known);
      else if (known) {
        const operator = await operators.changeIdentity(known._id, identity);
        if (operator === null) continue;
        await operatorReplication.replicate(operator);
        if (!mayEnter && operator.role === "member" && operator.projects.length === 0) throw refusal;
        return operatorView(operator);
      } else {
        if (!mayEnter) throw refusal;
        const operator = await operators.insertIdentity(newOperatorId(now()), identity, now());
        if (operator) return replicated(Promise.resolve(operator));
      }
    }
  };

  return [
    handleRequest(bus, operatorRequests.signIn, signIn),

    handleRequest(bus, operatorRequests.create, ({ operatorId, ...fields }) =>
      replicated(operators.save({ _id: operatorId, ...fields, createdAt: now() })),
    ),

    handleRequest(bus, operatorRequests.list, async ({ page }) => mapPage(await operators.list(page), operatorView)),

    handleRequest(bus, operatorRequests.get, async ({ operatorId }) =>
      operatorView(existing(await operators.find(operatorId), operatorNotFound)),
    ),

    handleRequest(bus, operatorRequests.change, ({ operatorId, ...fields }) =>
      replicated(operators.change(operatorId, fields)),
    ),

    handleRequest(bus, operatorRequests.rotate, ({ operatorId, tokenHash }) =>
      replicated(operators.replaceToken(operatorId, tokenHash, now())),
    ),

    handleRequest(bus, operatorRequests.signOut, ({ operatorId }) =>
      replicated(operators.change(operatorId, { signedOutAt: now() })),
    ),

    handleRequest(bus, operatorRequests.delete, async ({ operatorId }) => {
      await replicated(operators.markDeleted(operatorId, now()));
      return {};
    }),
  ];
};
