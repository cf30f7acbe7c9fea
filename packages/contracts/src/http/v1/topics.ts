import { z } from "zod";
import { DeviceId, TopicId } from "../../ids.ts";
import { named, namedBody, withProblems } from "../../named.ts";
import { listQuery } from "./pagination.ts";

const nameCharacters = z
  .string()
  .regex(/^[A-Za-z0-9._~-]{1,128}$/, "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -");

/** 1 to 128 letters, digits and `._~-`; not `all`, `.` or `..`, and without the prefix of an id. */
export const TopicName = nameCharacters
  .refine((name) => !/^\.\.?$/.test(name), "may not be `.` or `..`, which no path can say")
  .refine((name) => name !== "all", "may not be `all`: that is the target that means every device")
  .refine((name) => !/^(dev|top)_/.test(name), "may not begin with `dev_` or `top_`: ids do")
  .meta({ id: "TopicName", examples: ["news"] });

/** Parameters that a list by name does not support. */
const byTime = ["sort", "created_after", "created_before"] as const;

/** The query of `GET /topics`. */
export const TopicListQuery = z
  .strictObject({
    ...listQuery,
    prefix: nameCharacters.optional().meta({
      description:
        "Only topics whose name begins with this, by name. `sort`, `created_after` and `created_before` cannot be combined with it",
      examples: ["news"],
    }),
  })
  .superRefine(
    withProblems((query) =>
      byTime
        .filter((name) => query.prefix !== undefined && query[name] !== undefined)
        .map((name) => ({ path: [name], message: "cannot be combined with prefix, which lists by name" })),
    ),
  );

export const Topic = named("Topic", {
  id: TopicId,
  name: z.string().meta({ examples: ["news"] }),
  devices: z.number().int().min(0).meta({
    description: "Subscribed devices; above 10,000 at most 10 s old, or 20 times as old as it took to count them",
  }),
  closed: z.boolean().default(false).meta({ description: "Only a project token subscribes devices to it" }),
  created_at: z.iso.datetime(),
});
export type Topic = z.infer<typeof Topic>;

/** Body of `POST /topics`. */
export const CreateTopic = namedBody("CreateTopic", {
  topic: z.strictObject({ name: TopicName, closed: z.boolean().optional() }),
});

/** Body of `PATCH /topics/{id}`. */
export const ChangeTopic = namedBody("ChangeTopic", { topic: z.strictObject({ closed: z.boolean() }) });

/** Body of `PUT` and `DELETE /topics/{id}/devices`. */
export const TopicDevices = namedBody("TopicDevices", { devices: z.array(DeviceId).min(1).max(1000) });

/** A topic in a path: its id or its name. */
export const TopicReference = z.union([TopicId, TopicName]);
export type TopicReference = z.infer<typeof TopicReference>;

/** The result of a bulk subscription. */
export const SubscriptionResult = named("SubscriptionResult", {
  topic: Topic.pick({ id: true, name: true }),
  changed: z.number().int().min(0).meta({ description: "Devices whose subscription changed" }),
  unknown: z.array(DeviceId).meta({ description: "Devices that the project does not have" }),
  full: z.array(DeviceId).default([]).meta({
    description: "Devices that have no room for another topic: 64 topics and values of metadata and identifiers",
  }),
});
