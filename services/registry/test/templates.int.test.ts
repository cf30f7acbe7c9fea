import { openBucket } from "@herald/bus";
import {
  newTokenId,
  type ProjectId,
  projectRequests,
  type TemplateContent,
  TemplatePublishedV1,
  TemplateRecord,
  templateKey,
  templateLimits,
  templateRequests,
} from "@herald/contracts";
import { createCounts } from "@herald/mongo";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createTemplateStore, templateCollection } from "../src/stores/template-store.ts";
import { failure, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  overrides: { reconcileEveryMs: 500 },
  eachProject: (id) => {
    projectId = id;
  },
});

const author = { id: newTokenId(new Date()) };
const content = (title: string): TemplateContent => ({ title, variables: { name: { type: "string" } } });
const put = (name: string, title: string) =>
  registry.ask(templateRequests.put, { projectId, name, content: content(title), author });
const publish = (name: string) => registry.ask(templateRequests.publish, { projectId, name, author });
const get = (name: string, version?: number) => registry.ask(templateRequests.get, { projectId, name, version });
const record = async (name: string) =>
  (await openBucket(registry.bus, "push_content", TemplateRecord).get(templateKey(projectId, name)))?.value;

const contentCollection = () =>
  registry.db.collection<{ _id: string; projectId: string; content: string; at: Date }>("templates");
const contents = (name: string) => {
  const prefix = `content/${projectId}/${name}/`;
  return contentCollection()
    .find({ projectId, _id: { $gte: prefix, $lt: `${prefix}~` } })
    .toArray();
};

describe("a template", () => {
  test("is a draft until it is published, and then a version that never changes", async () => {
    expect(await put("welcome", "Hi {{ name }}")).toMatchObject({
      created: true,
      template: { name: "welcome", version: "draft", changed: true, author },
    });
    expect(await record("welcome")).toBeUndefined();
    expect(await publish("welcome")).toEqual({ version: 1 });
    expect(await record("welcome")).toMatchObject({ name: "welcome", version: 1, content: content("Hi {{ name }}") });
    await eventually(async () =>
      expect(await registry.lastEvent(projectId, TemplatePublishedV1)).toMatchObject({
        template: "welcome",
        version: 1,
        author,
      }),
    );
    // The same content is the same version, also when its fields have another order.
    expect(await put("welcome", "Hi {{ name }}")).toMatchObject({ created: false, template: { changed: false } });
    expect(await publish("welcome")).toEqual({ version: 1 });

    await put("welcome", "Hello {{ name }}");
    expect(await get("welcome")).toMatchObject({ version: "draft", published: 1, changed: true });
    expect((await record("welcome"))?.version).toBe(1);
    expect(await publish("welcome")).toEqual({ version: 2 });
    expect((await get("welcome", 1)).content.title).toBe("Hi {{ name }}");
    expect((await get("welcome", 2)).content.title).toBe("Hello {{ name }}");
    expect(await failure(get("welcome", 3))).toMatchObject({ code: "template-not-found" });
    const page = { by: "page", page: 1, perPage: 20 } as const;
    const versions = await registry.ask(templateRequests.versions, { projectId, name: "welcome", page });
    expect(versions.data.map(({ version }) => version)).toEqual([2, 1]);
    const list = await registry.ask(templateRequests.list, { projectId, page });
    expect(list.data).toMatchObject([{ name: "welcome", published: 2, changed: false }]);
  });

  test("keeps names that a database would read otherwise", async () => {
    const odd = {
      title: "x",
      data: { "a.b": "{{ name }}", $set: "1", __proto__x: "2" },
      variables: content("").variables,
    };
    await registry.ask(templateRequests.put, { projectId, name: "odd", content: odd, author });
    expect((await get("odd")).content).toEqual(odd);
  });

  test("gets one number for each publication, also of concurrent ones", async () => {
    await put("race", "one");
    const versions = await Promise.all(Array.from({ length: 6 }, () => publish("race")));
    expect(new Set(versions.map(({ version }) => version))).toEqual(new Set([1]));
    for (let at = 2; at <= templateLimits.versions + 3; at++) {
      await put("race", `text ${at}`);
      expect(await publish("race")).toEqual({ version: at });
    }
    expect(await failure(get("race", 3))).toMatchObject({ code: "template-not-found" });
    expect((await get("race", 4)).content.title).toBe("text 4");
  });

  test("shows no draft or version without its content while others write and publish", async () => {
    await put("busy", "text 0");
    await publish("busy");
    const titles = new Map<number, unknown>();
    const write = async (from: number) => {
      for (let at = 0; at < 10; at++) {
        await put("busy", `text ${from + at}`);
        const { version } = await publish("busy");
        const { title } = (await get("busy", version)).content;
        // A version never changes.
        expect(titles.get(version) ?? title).toBe(title);
        titles.set(version, title);
      }
    };
    const read = async () => {
      for (let at = 0; at < 40; at++) expect((await get("busy")).content.title).toMatch(/^text \d+$/);
    };
    await Promise.all([write(100), write(200), write(300), read(), read()]);
    const { version } = await publish("busy");
    expect((await record("busy"))?.content.title).toBe((await get("busy", version)).content.title);
    const page = { by: "page", page: 1, perPage: 100 } as const;
    const { data } = await registry.ask(templateRequests.versions, { projectId, name: "busy", page });
    expect(data.map((one) => one.version)).toEqual(Array.from({ length: version }, (_, at) => version - at));
    // The drafts between them are gone.
    expect(await contents("busy")).toHaveLength(version);
  });

  test("loses the contents of old versions, and those that a crash left, and all when it is deleted", async () => {
    const { versions } = templateLimits;
    for (let at = 1; at <= versions + 1; at++) {
      await put("old", `text ${at}`);
      await publish("old");
    }
    const long = new Date(Date.now() - 120_000);
    const prefix = `content/${projectId}/old/`;
    await contentCollection().insertOne({ _id: `${prefix}left`, projectId, content: "{}", at: long });
    await contentCollection().updateMany({ _id: { $gte: prefix, $lt: `${prefix}~` } }, { $set: { at: long } });
    await put("old", "the last");
    await publish("old");
    expect(await contents("old")).toHaveLength(versions);
    expect((await get("old", 3)).content.title).toBe("text 3");
    await registry.ask(templateRequests.delete, { projectId, name: "old" });
    expect(await contents("old")).toEqual([]);
  });

  test("is refused above the share of its project while others fill the room", async () => {
    const others = openBucket(registry.bus, "push_content", z.object({ fill: z.string() }));
    const { maxBytes } = await others.fill();
    const share = Math.floor(maxBytes / 1_024);
    const body = "x".repeat(Math.ceil(share / 3));
    const putLarge = (name: string, title = name) =>
      registry.ask(templateRequests.put, { projectId, name, content: { title, body }, author });
    // While there is room, it has what it needs.
    for (const name of ["one", "two", "three", "four"]) {
      await putLarge(name);
      await publish(name);
    }
    const keys: string[] = [];
    for (let fill = await others.fill(); fill.bytes < maxBytes * 0.76; fill = await others.fill()) {
      const key = `other.fill${keys.length}`;
      await others.put(key, { fill: "x".repeat(maxBytes / 100) });
      keys.push(key);
    }
    try {
      await putLarge("more");
      const refused = await failure(publish("more"));
      expect(refused).toMatchObject({ code: "template-limit" });
      expect(refused.messages.join()).toMatch(
        new RegExp(`would take \\d+ bytes, and at most ${share} are accepted while the room of all projects`),
      );
      // What is no larger than before is published, and a project that has little publishes what it wants.
      await putLarge("one", "eno");
      expect(await publish("one")).toEqual({ version: 2 });
      projectId = await registry.project();
      await putLarge("first");
      expect(await publish("first")).toEqual({ version: 1 });
    } finally {
      await Promise.all(keys.map((key) => others.delete(key)));
    }
  });

  test("is gone for sends when it is deleted, and its name is free", async () => {
    await put("gone", "a");
    await publish("gone");
    await registry.ask(templateRequests.delete, { projectId, name: "gone" });
    expect(await record("gone")).toBeUndefined();
    const remove = () => registry.ask(templateRequests.delete, { projectId, name: "gone" });
    for (const ask of [() => get("gone"), () => publish("gone"), remove])
      expect(await failure(ask())).toMatchObject({ code: "template-not-found" });
    expect(await put("gone", "b")).toMatchObject({ created: true });
    expect(await publish("gone")).toEqual({ version: 1 });
  });

  test("is not touched by the deletion of an earlier one of its name that ends late", async () => {
    const store = createTemplateStore(registry.db, createCounts());
    await put("again", "a");
    await publish("again");
    const earlier = await store.find(projectId, "again");
    if (!earlier) throw new Error("it is not stored");
    // A draft whose row is written after the deletion.
    const next = `content/${projectId}/again/next`;
    await contentCollection().insertOne({ _id: next, projectId, content: "{}", at: new Date() });
    await registry.ask(templateRequests.delete, { projectId, name: "again" });
    expect((await contents("again")).map(({ _id }) => _id)).toEqual([next]);
    await put("again", "b");
    await publish("again");
    await store.remove(earlier);
    expect((await get("again")).content.title).toBe("b");
    expect((await get("again", 1)).content.title).toBe("b");
  });

  test("without its content keeps no other from the gateways", async () => {
    for (const name of ["broken", "later"]) {
      await put(name, name);
      await publish(name);
    }
    await contentCollection().deleteMany({
      projectId,
      _id: { $gte: `content/${projectId}/broken/`, $lt: `content/${projectId}/broken/~` },
    });
    const bucket = openBucket(registry.bus, "push_content", TemplateRecord);
    for (const name of ["broken", "later"]) await bucket.delete(templateKey(projectId, name));
    await eventually(async () => expect(await record("later")).toMatchObject({ version: 1 }));
    expect(await record("broken")).toBeUndefined();
    await put("broken", "whole");
    await publish("broken");
    expect((await record("broken"))?.content.title).toBe("whole");
  });

  test("is of its project alone, and at most two hundred are", async () => {
    await put("mine", "a");
    const stranger = await registry.project();
    expect(await failure(registry.ask(templateRequests.get, { projectId: stranger, name: "mine" }))).toMatchObject({
      code: "template-not-found",
    });
    const templates = templateCollection(registry.db);
    const one = await templates.findOne({ projectId, name: "mine" });
    if (one === null) throw new Error("it is not stored");
    await templates.insertMany(
      Array.from({ length: templateLimits.perProject - 1 }, (_, at) => {
        const name = `t${at}`;
        return { ...one, _id: `${one._id}/${name}` as typeof one._id, name };
      }),
    );
    expect(await failure(put("more", "a"))).toMatchObject({ code: "template-limit" });
    expect(await put("mine", "b")).toMatchObject({ created: false });
  });

  test("reaches the gateways after a crash, and leaves them with its project", async () => {
    await put("lost", "a");
    await publish("lost");
    const bucket = openBucket(registry.bus, "push_content", TemplateRecord);
    await bucket.delete(templateKey(projectId, "lost"));
    await eventually(async () => expect(await record("lost")).toMatchObject({ version: 1 }));
    await templateCollection(registry.db).updateOne({ projectId, name: "lost" }, { $set: { deletedAt: new Date() } });
    await eventually(async () => expect(await record("lost")).toBeUndefined());
    await eventually(async () => expect(await put("lost", "b")).toMatchObject({ created: true }));
    await publish("lost");
    await registry.ask(projectRequests.delete, { projectId });
    await eventually(async () => expect(await record("lost")).toBeUndefined());
    expect(await templateCollection(registry.db).countDocuments({ projectId })).toBe(0);
  });
});
