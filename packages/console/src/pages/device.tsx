import type { FurtherToken } from "@herald/client";
import { Button, Group, Pill, Stack, Text } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { useActs, useRead } from "../api/read.ts";
import { Copyable, JsonCode } from "../parts/code.tsx";
import { FindForm } from "../parts/field.tsx";
import { Confirm } from "../parts/form.tsx";
import { platformNames, Time } from "../parts/format.tsx";
import { JsonEditor, patchOf } from "../parts/json-editor.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Problem } from "../parts/problem.tsx";
import { useMayWrite } from "../session-context.tsx";
import { Timeline } from "./device/timeline.tsx";

const nameOf = ({ type, name }: FurtherToken): string => (name === undefined ? type : `${type} (${name})`);

export default function DevicePage() {
  const { id, herald } = useProject();
  const { device = "" } = useParams({ strict: false }) as { device?: string };
  const navigate = useNavigate();
  const { data, error, refetch } = useRead([id, "devices", device], (options) => herald.devices.get(device, options));
  const subscribing = useActs();
  const changing = useActs();
  const nextStatus = data?.status === "active" ? "inactive" : "active";
  const may = useMayWrite();
  return (
    <Page
      name="Device"
      title={<span className="cut mono">{device}</span>}
      status={data?.status}
      role={{ needs: "operator", can: "change anything here" }}
      actions={
        data &&
        may && (
          <>
            <Button
              variant="default"
              loading={changing.isPending}
              onClick={() => changing.mutate(() => herald.devices.update(device, { status: nextStatus }))}
            >
              {nextStatus === "active" ? "Activate" : "Deactivate"}
            </Button>
            <Confirm
              title="Delete this device?"
              verb="Delete the device"
              button={{ size: "sm" }}
              act={() => herald.devices.delete(device)}
              onDone={() => void navigate({ to: `/p/${id}/devices` })}
              about="It gets no more notifications, and its credential stops working. The app can register it again."
            />
          </>
        )
      }
    >
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {changing.error && <Problem error={changing.error} />}
      {data && (
        <div className="columns wide">
          <Stack>
            <Timeline device={device} />
          </Stack>
          <Stack>
            <Panel title="Device">
              <Facts
                facts={{
                  Platform: `${platformNames[data.platform] ?? data.platform}${data.environment ? `, ${data.environment}` : ""}`,
                  ...(data.app !== undefined && { App: data.app }),
                  "Push token": <Copyable value={data.token} />,
                  ...(data.tokens && { "Push types": data.tokens.map(nameOf).join(", ") }),
                  User:
                    data.user_id === null ? (
                      <span className="muted">none</span>
                    ) : (
                      <Link className="link" to={`/p/${id}/users/${encodeURIComponent(data.user_id)}`}>
                        {data.user_id}
                      </Link>
                    ),
                  "Last seen": <Time at={data.last_seen_at} />,
                  "Last opened": <Time at={data.last_opened_at} />,
                  Created: <Time at={data.created_at} />,
                }}
              />
            </Panel>
            <Panel title="Topics">
              <Stack>
                {subscribing.error && <Problem error={subscribing.error} />}
                <Group gap={6}>
                  {data.topics.map((name) => (
                    <Pill
                      key={name}
                      size="md"
                      withRemoveButton={may}
                      removeButtonProps={{
                        "aria-label": `Unsubscribe from ${name}`,
                        "aria-hidden": false,
                        tabIndex: 0,
                      }}
                      onRemove={() => subscribing.mutate(() => herald.devices.unsubscribe(device, name))}
                    >
                      {name}
                    </Pill>
                  ))}
                  {data.topics.length === 0 && (
                    <Text span c="dimmed">
                      Not subscribed to any topic.
                    </Text>
                  )}
                </Group>
                {may && (
                  <FindForm
                    key={data.topics.join()}
                    size="xs"
                    label="Topic to subscribe to"
                    verb="Add"
                    variant="default"
                    onFind={(topic) => subscribing.mutate(() => herald.devices.subscribe(device, topic))}
                  />
                )}
              </Stack>
            </Panel>
            {(
              [
                ["metadata", "Metadata"],
                ["identifiers", "Identifiers"],
              ] as const
            ).map(([field, title]) => (
              <Panel
                key={field}
                title={title}
                actions={
                  may && (
                    <JsonEditor
                      title={title}
                      value={data[field]}
                      save={(value) => herald.devices.update(device, { [field]: patchOf(data[field], value) })}
                    />
                  )
                }
              >
                {Object.keys(data[field]).length === 0 ? (
                  <Text span c="dimmed">
                    none
                  </Text>
                ) : (
                  <JsonCode value={data[field]} />
                )}
              </Panel>
            ))}
          </Stack>
        </div>
      )}
    </Page>
  );
}
