import type * as contracts from "@herald/contracts";
import { expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import { generateTypes } from "../test/generate-types.ts";
import type {
  ApnsSettings,
  AuditFilters,
  Delivery,
  Device,
  EventData,
  FieldProblem,
  NewActivity,
  NewDevice,
  NewNotification,
  NewPause,
  NewProjectToken,
  NewWebhook,
  Notification,
  NotificationChange,
  ProviderView,
  PutDevice,
  Stats,
  StatsQuery,
  Topic,
  User,
  Webhook,
} from "./api-types.ts";
import type { DeviceListOptions } from "./devices.ts";

type NewRecipient = Extract<NewNotification["recipients"], readonly unknown[]>[number];

/** Removes `readonly`: input types have it, schemas do not. A Date becomes text in JSON. */
type Mutable<Value> = Value extends Date
  ? string
  : Value extends readonly (infer Item)[]
    ? Mutable<Item>[]
    : Value extends object
      ? { -readonly [Key in keyof Value]: Mutable<Value[Key]> }
      : Value;

/** May be the first to install the formatter. */
const installTimeoutMs = 180_000;

test("the types in src are those of the contracts; a change of the interface is a diff (npm run docs)", {
  timeout: installTimeoutMs,
}, async () => {
  await expect(generateTypes()).toMatchFileSnapshot("./api-types.ts");
});

test("whatever a contract lets Herald answer is of the client's type", () => {
  expectTypeOf<contracts.Device>().toExtend<Device>();
  expectTypeOf<contracts.Notification>().toExtend<Notification>();
  expectTypeOf<contracts.Delivery>().toExtend<Delivery>();
  expectTypeOf<contracts.Topic>().toExtend<Topic>();
  expectTypeOf<contracts.User>().toExtend<User>();
  expectTypeOf<contracts.Stats>().toExtend<Stats>();
  expectTypeOf<contracts.Webhook>().toExtend<Webhook>();
  expectTypeOf<contracts.ProviderView>().toExtend<ProviderView>();
  expectTypeOf<contracts.EventData<"NotificationCompletedV1">>().toExtend<
    EventData["io.herald.notification.completed.v1"]
  >();
});

test("a problem of a whole request has no pointer", () => {
  expectTypeOf<z.infer<typeof contracts.Problem>["problems"][number]>().toExtend<FieldProblem>();
  expectTypeOf<FieldProblem["pointer"]>().toEqualTypeOf<string | undefined>();
});

test("whatever the client's types let through is what a contract takes", () => {
  type OfSends = keyof typeof contracts.templateFields | keyof typeof contracts.targetFields;
  expectTypeOf<Mutable<Omit<NewNotification, OfSends>>>().toExtend<
    Omit<z.input<typeof contracts.NotificationContent>, OfSends>
  >();
  expectTypeOf<Mutable<NewNotification["recipients"]>>().toExtend<
    z.input<(typeof contracts.targetFields)["recipients"]>
  >();
  expectTypeOf<Mutable<NewDevice>>().toExtend<z.input<typeof contracts.RegisterDevice>["device"]>();
  expectTypeOf<Mutable<NewWebhook>>().toExtend<z.input<typeof contracts.CreateWebhook>["webhook"]>();
  expectTypeOf<Mutable<ApnsSettings>>().toExtend<z.input<typeof contracts.ApnsSettings>>();
  expectTypeOf<Mutable<Omit<StatsQuery, "notification">>>().toExtend<z.input<typeof contracts.StatsQuery>>();
});

test("a target has a known prefix", () => {
  type Targets = NonNullable<NewNotification["targets"]>;
  expectTypeOf([
    "all",
    "topic:news",
    "user:u-17",
    "metadata:plan=pro",
    "condition:'news' in topics",
  ] as const).toExtend<Targets>();
  expectTypeOf(["u-17", "u-18"].map((id): Targets[number] => `user:${id}`)).toExtend<Targets>();
  // @ts-expect-error
  expectTypeOf(["nonsense:x"] as const).toExtend<Targets>();
  // @ts-expect-error
  expectTypeOf(["metadata:plan"] as const).toExtend<Targets>();
  // @ts-expect-error
  expectTypeOf<"topic:news">().toExtend<NewRecipient["target"]>();
  expectTypeOf<NewActivity["targets"]>().toEqualTypeOf<Targets>();
  expectTypeOf<DeviceListOptions["match"]>().toEqualTypeOf<Targets[number] | undefined>();
});

test("each time that a caller gives may be a Date", () => {
  type Time = Date | string | undefined;
  expectTypeOf<NewNotification["send_at"]>().toEqualTypeOf<Time>();
  expectTypeOf<NotificationChange["send_at"]>().toEqualTypeOf<Time>();
  expectTypeOf<PutDevice["last_seen_at"]>().toEqualTypeOf<Time>();
  expectTypeOf<NewProjectToken["expires_at"]>().toEqualTypeOf<Time>();
  expectTypeOf<NewPause["until"]>().toEqualTypeOf<Time>();
  expectTypeOf<StatsQuery["from"]>().toEqualTypeOf<Time>();
  expectTypeOf<AuditFilters["created_after"]>().toEqualTypeOf<Time>();
  expectTypeOf<Notification["created_at"]>().toEqualTypeOf<string>();
});

test("a change of a rollout is a speed alone", () => {
  expectTypeOf<{ rollout: { per_minute: number } }>().toExtend<NotificationChange>();
  expectTypeOf<Mutable<NotificationChange>>().toExtend<z.input<typeof contracts.ChangeNotification>["notification"]>();
  // @ts-expect-error
  expectTypeOf<{ rollout: { stop_if: { failed: number } } }>().toExtend<NotificationChange>();
});

test("a value that the client does not know is no type error", () => {
  expectTypeOf<"visionos">().toExtend<Device["platform"]>();
  expectTypeOf<Device["platform"]>().not.toEqualTypeOf<string>();
});
