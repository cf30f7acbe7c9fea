import { expect, test } from "vitest";
import { mergeSent, type SentToUser } from "./merge-sent.ts";

const row = (id: string, status: string, device?: string): SentToUser => ({
  notification: { id, created_at: "2030-01-31T09:00:00.000Z", title: id },
  status,
  device,
});
const idsOf = ({ data }: ReturnType<typeof mergeSent>) => data.map(({ notification }) => notification.id);

test("a notification on two devices is one row with its best result; one that only names the user is a row too", () => {
  const merged = mergeSent([
    { rows: [row("ntf_4", "scheduled"), row("ntf_3", "completed")] },
    { rows: [row("ntf_3", "failed", "dev_1"), row("ntf_1", "accepted", "dev_1")] },
    { rows: [row("ntf_3", "opened", "dev_2"), row("ntf_1", "skipped", "dev_2")] },
  ]);
  expect(merged).toEqual({
    data: [row("ntf_4", "scheduled"), row("ntf_3", "opened", "dev_2"), row("ntf_1", "accepted", "dev_1")],
    more: false,
  });
});

test("rows end where the first list does, so that none is missing between them", () => {
  const merged = mergeSent([
    { rows: [row("ntf_9", "completed")] },
    { rows: [row("ntf_8", "accepted", "dev_1"), row("ntf_6", "accepted", "dev_1")], end: "ntf_5" },
    { rows: [row("ntf_7", "accepted", "dev_2"), row("ntf_2", "accepted", "dev_2")] },
  ]);
  expect(idsOf(merged)).toEqual(["ntf_9", "ntf_8", "ntf_7", "ntf_6"]);
  expect(merged.more).toBe(true);
});
