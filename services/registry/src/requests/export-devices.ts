import type { ExportDevices } from "@herald/contracts";
import { encodeAfter } from "@herald/mongo";
import { exportPage } from "@herald/service";
import type { z } from "zod";
import type { Deps } from "../deps.ts";
import { formatPosition } from "../domain/match-walk.ts";
import { exportPosition, matchDevices } from "./match-devices.ts";
import { deviceView } from "./views.ts";

type Request = z.output<typeof ExportDevices.request>;

/** A page of an export: the devices that a list has with the same filters. With `match` a page may be empty before the last one. */
export const exportDevices = async (
  deps: Pick<Deps, "audience" | "devices">,
  { after, limit, keys, match, status, ...wanted }: Request,
  signal: AbortSignal,
) => {
  const read = async () => {
    if (match !== undefined)
      return matchDevices(deps, { ...wanted, match, start: exportPosition(after), perPage: limit }, signal);
    const { projectId, createdAfter, createdBefore, ...filter } = wanted;
    const page = { by: "key", after: after === undefined ? "" : encodeAfter(after), perPage: limit } as const;
    const found = await deps.devices.list(projectId, { ...filter, status }, { ...page, createdAfter, createdBefore });
    return { data: found.data, next: "next" in found ? found.next : null };
  };
  const { data, next } = await read();
  const rows = data.map((device) => ({ ...deviceView(device), ...(keys && device.keys && { keys: device.keys }) }));
  const page = exportPage(rows, next !== null);
  // A position knows more than the last row: where the walk goes on after rows that do not fit.
  if (typeof next !== "object" || next === null || page.rows.length < rows.length) return page;
  return { ...page, next: formatPosition(next) };
};
