import type { Device, Target } from "@herald/client";
import { useProject } from "../api/clients.ts";
import { firstRows, useRows } from "../api/read.ts";
import { ChoiceFilter, TextFilter, useFilters } from "../parts/filters.tsx";
import { List, type ListPage } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { deviceColumns } from "./trace.tsx";

/** A list by target has cursors but no count, so the page shows only the first devices. */
const maxMatching = 200;

export default function Devices() {
  const { id, herald } = useProject();
  const { search, page } = useFilters();
  const { status, platform, user, match } = search;
  const query = useRows(
    [id, "devices", { status, platform, user, match, page }],
    async ({ signal }): Promise<ListPage<Device>> =>
      match
        ? firstRows(herald.devices.list({ signal, match: match as Target, perPage: 100 }), maxMatching)
        : herald.devices.list({ signal, perPage: 25, sort: "-created_at", status, platform, userId: user }).page(page),
  );
  return (
    <Page title="Devices">
      <List
        filters={
          <>
            <ChoiceFilter name="status" label="Status" values={["active", "inactive"]} />
            <ChoiceFilter name="platform" label="Platform" values={["ios", "android", "web"]} />
            <TextFilter name="match" label="Match: topic:news, metadata:plan=pro …" width={260} />
            <TextFilter name="user" label="User" width={130} />
          </>
        }
        query={query}
        columns={deviceColumns(id)}
        keyOf={(row) => row.id}
        label="Devices"
        unmatched="No devices match these filters."
        empty={{
          title: "No devices yet",
          text: "Your app registers devices with POST /api/v1/devices. The guide “Connect your app” has code for each platform.",
        }}
      />
    </Page>
  );
}
