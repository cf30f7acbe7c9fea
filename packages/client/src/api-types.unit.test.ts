import type * as contracts from "@herald/contracts";
import { expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import { generateTypes } from "../test/generate-types.ts";
import type {
  ApnsSettings,
  Delivery,
  Device,
  EventData,
  FieldProblem,
  NewDevice,
  NewNotification,
  NewWebhook,
  Notification,
  ProviderView,
  Stats,
  StatsQuery,
  Topic,
  User,
  Webhook,
} from "./api-types.ts";

/** Removes `readonly`: input types have it, schemas do not. */
type Mutable<Value> = Value extends readonly (infer Item)[]
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
  expectTypeOf<Omit<StatsQuery, "notification">>().toExtend<z.input<typeof contracts.StatsQuery>>();
});

test("a value that the client does not know is no type error", () => {
  expectTypeOf<"visionos">().toExtend<Device["platform"]>();
  expectTypeOf<Device["platform"]>().not.toEqualTypeOf<string>();
});
