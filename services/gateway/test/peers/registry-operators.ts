import { type Bus, openBucket } from "@herald/bus";
import {
  identityHash,
  newOperatorId,
  type Operator,
  type OperatorId,
  OperatorRecord,
  operatorRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { at, pageOf, type Serve } from "./rows.ts";

type Row = { readonly view: Operator; readonly tokenHash: string };

/** Registry's operators, with the records that gateways watch. */
export const serveOperators = (serve: Serve, bus: Bus) => {
  const operators = new Map<string, Row>();
  const bucket = openBucket(bus, "push_operators", OperatorRecord);

  const rowOf = (id: OperatorId): Row => {
    const found = operators.get(id);
    if (found === undefined) throw notFound("operator-not-found", "operator");
    return found;
  };
  const save = async (view: Operator, tokenHash: string): Promise<Operator> => {
    const earlier = operators.get(view.id)?.tokenHash;
    operators.set(view.id, { view, tokenHash });
    const { id, name, role, projects, groups, signed_out_at: signedOutAt } = view;
    const more = { ...(groups && { groups }), ...(signedOutAt && { signedOutAt }) };
    await bucket.put(tokenHash, { id, name, role, projects, ...more });
    if (earlier !== undefined && earlier !== tokenHash) await bucket.delete(earlier);
    return view;
  };

  serve(operatorRequests.create, ({ operatorId: id, name, role, projects, tokenHash }) =>
    save({ id, name, role, projects, created_at: at() }, tokenHash),
  );
  serve(operatorRequests.list, ({ page }) =>
    pageOf(
      [...operators.values()].map(({ view }) => view),
      page,
    ),
  );
  serve(operatorRequests.get, ({ operatorId }) => rowOf(operatorId).view);
  serve(operatorRequests.change, ({ operatorId, ...change }) => {
    const { view, tokenHash } = rowOf(operatorId);
    const given = Object.entries(change).filter(([, value]) => value !== undefined);
    return save({ ...view, ...Object.fromEntries(given) }, tokenHash);
  });
  serve(operatorRequests.signOut, ({ operatorId }) => {
    const { view, tokenHash } = rowOf(operatorId);
    return save({ ...view, signed_out_at: at() }, tokenHash);
  });
  serve(operatorRequests.rotate, ({ operatorId, tokenHash }) =>
    save({ ...rowOf(operatorId).view, rotated_at: at() }, tokenHash),
  );
  serve(operatorRequests.signIn, ({ issuer, subject, everyone, ...person }) => {
    const hash = identityHash(issuer, subject);
    const known = [...operators.values()].find(({ tokenHash }) => tokenHash === hash)?.view;
    const fresh = { id: newOperatorId(new Date()), role: "member" as const, projects: [], created_at: at() };
    if (!everyone && person.groups.length === 0 && known === undefined)
      throw new HeraldError("sign-in-not-permitted", "sign-in: no group of this person is in the groups file");
    return save({ ...(known ?? fresh), ...person }, hash);
  });
  serve(operatorRequests.delete, async ({ operatorId }) => {
    const { tokenHash } = rowOf(operatorId);
    operators.delete(operatorId);
    await bucket.delete(tokenHash);
    return {};
  });
};
