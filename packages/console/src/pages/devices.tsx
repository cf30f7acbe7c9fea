import type { Target } from "@herald/client";
import { useProject } from "../api/clients.ts";
import { firstRows } from "../api/read.ts";
import { ChoiceFilter, TextFilter } from "../parts/filters.tsx";
import { List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { deviceColumns } from "./trace.tsx";

/** A list by target has cursors but no count, so the page shows only the first devices. */
const maxMatching = 200;

export default function Devices() {
  const { id, herald } = useProject();
  return (
    <Page title="Devices">
      <List
        label="Devices"
        queryKey={[id, "devices", "list"]}
        read={async ({ signal, page }, { status, platform, user: userId, match }) =>
          match
            ? { data: (await firstRows(herald.devices.list({ signal, match: match as Target }), maxMatching)).data }
            : herald.devices.list({ signal, perPage: 25, sort: "-created_at", status, platform, userId }).page(page)
        }
        filters={
          <>
            <ChoiceFilter name="status" label="Status" values={["active", "inactive"]} />
            <ChoiceFilter name="platform" label="Platform" values={["ios", "android", "web"]} />
            <TextFilter name="match" label="Match: topic:news, metadata:plan=pro …" width={260} />
            <TextFilter name="user" label="User" width={130} />
          </>
        }
        columns={deviceColumns(id)}
        unmatched="No devices match these filters."
        empty={{
          title: "No devices yet",
          text: "Your app registers devices with POST /api/v1/devices. The guide “Connect your app” has code for each platform.",
        }}
      />
    </Page>
  );
}
