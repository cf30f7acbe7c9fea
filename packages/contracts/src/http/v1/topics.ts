import { z } from "zod";
import { DeviceId, TopicId } from "../../ids.ts";

/** 1 to 128 of letters, digits and `._~-`; not `all`, not `.` or `..`, and nothing that reads like an id. */
export const TopicName = z
  .string()
  .regex(/^[A-Za-z0-9._~-]{1,128}$/, "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
  .refine((name) => !/^\.\.?$/.test(name), "may not be `.` or `..`, which no path can say")
  .refine((name) => name !== "all", "may not be `all`: that is the target that means every device")
  .refine((name) => !/^(dev|top)_/.test(name), "may not begin with `dev_` or `top_`: ids do")
  .meta({ id: "TopicName", examples: ["news"] });
export type TopicName = z.infer<typeof TopicName>;

export const Topic = z
  .object({
    id: TopicId,
    name: z.string().meta({ examples: ["news"] }),
    devices: z.number().int().min(0).meta({
      description: "Subscribed devices; above 10,000 at most 10 s old, or 20 times as old as it took to count them",
    }),
    closed: z.boolean().default(false).meta({ description: "Only a project token subscribes devices to it" }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "Topic" });
export type Topic = z.infer<typeof Topic>;

/** Body of `POST /topics`. */
export const CreateTopic = z
  .strictObject({ topic: z.strictObject({ name: TopicName, closed: z.boolean().optional() }) })
  .meta({ id: "CreateTopic" });
export type CreateTopic = z.infer<typeof CreateTopic>;

/** Body of `PATCH /topics/{id}`. */
export const ChangeTopic = z
  .strictObject({ topic: z.strictObject({ closed: z.boolean() }) })
  .meta({ id: "ChangeTopic" });
export type ChangeTopic = z.infer<typeof ChangeTopic>;

/** Body of `PUT` and `DELETE /topics/{id}/devices`. */
export const TopicDevices = z
  .strictObject({ devices: z.array(DeviceId).min(1).max(1000) })
  .meta({ id: "TopicDevices" });
export type TopicDevices = z.infer<typeof TopicDevices>;

/** A topic in a path: its id or its name. */
export const TopicReference = z.union([TopicId, TopicName]);
export type TopicReference = z.infer<typeof TopicReference>;

/** What a bulk subscription did. */
export const SubscriptionResult = z
  .object({
    topic: Topic.pick({ id: true, name: true }),
    changed: z.number().int().min(0).meta({ description: "Devices whose subscription changed" }),
    unknown: z.array(DeviceId).meta({ description: "Devices that the project does not have" }),
    full: z.array(DeviceId).default([]).meta({
      description: "Devices that have no room for another topic: 64 topics and values of metadata and identifiers",
    }),
  })
  .meta({ id: "SubscriptionResult" });
export type SubscriptionResult = z.infer<typeof SubscriptionResult>;
