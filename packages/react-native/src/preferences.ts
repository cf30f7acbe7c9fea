import { deviceProblem } from "./call.ts";
import type { KindChoice } from "./types.ts";

type Answer = { readonly data: { readonly kinds: readonly KindChoice[] } };
/** A call of the device at one of its own routes. */
type AsDevice = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** Changes these choices of the device, the others stay; resolves to all. `asDevice` is undefined as long as Herald does not know the device. */
export const choose = async (
  asDevice: AsDevice | undefined,
  changed: Readonly<Record<string, boolean>>,
): Promise<readonly KindChoice[]> => {
  if (!asDevice)
    throw deviceProblem("not-registered", "Herald does not know the device yet: wait until the status names it", 409);
  const { data } = await asDevice("GET", "/preferences");
  if (Object.keys(changed).length === 0) return data.kinds;
  const own = data.kinds.filter(({ set_by }) => set_by === "device").map(({ kind, on }) => [kind, on]);
  const kinds = { ...Object.fromEntries(own), ...changed };
  return (await asDevice("PUT", "/preferences", { preferences: { kinds } })).data.kinds;
};
