import { describe, expect, test, vi } from "vitest";
import { createGroupCommit } from "./group-commit.ts";
import { HeraldError } from "./herald-error.ts";

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A writer whose groups the test settles one by one. */
const writer = (options: Partial<Parameters<typeof createGroupCommit>[1]> = {}) => {
  const groups: { items: readonly number[]; succeed: () => void; fail: (error: unknown) => void }[] = [];
  const commit = createGroupCommit<number, void>(
    (items) => new Promise((resolve, reject) => groups.push({ items, succeed: () => resolve([]), fail: reject })),
    { max: 3, concurrent: 1, waiting: 10, ...options },
  );
  const settle = async (work: () => void) => {
    await endOfTurn();
    work();
    // The writer takes its next group in the microtasks that follow.
    await endOfTurn();
  };
  return { groups, commit, settle };
};

describe("a group commit", () => {
  test("writes the items of a turn together, and later ones in groups of at most three, in order", async () => {
    const { groups, commit, settle } = writer();
    const written = [1, 2].map(commit);
    await Promise.resolve();
    written.push(commit(3), commit(4));
    expect(groups).toEqual([]);
    await settle(() => {});
    expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    written.push(...[5, 6, 7].map(commit));
    for (let group = 0; group < 3; group++) await settle(() => groups[group]?.succeed());
    await Promise.all(written);
    expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  });

  test("limits concurrent writes", async () => {
    const { groups, commit, settle } = writer({ concurrent: 2 });
    const written: Promise<void>[] = [];
    for (const item of [1, 2, 3]) {
      written.push(commit(item));
      await endOfTurn();
    }
    expect(groups.map(({ items }) => items)).toEqual([[1], [2]]);
    await settle(() => groups[1]?.succeed());
    expect(groups.map(({ items }) => items)).toEqual([[1], [2], [3]]);
    for (const { succeed } of groups) succeed();
    await Promise.all(written);
  });

  test("limits the bytes of a group, and writes a larger item alone", async () => {
    const { groups, commit, settle } = writer({ groupBytes: 5 });
    const written = [1, 2, 3, 9, 1].map((item) => commit(item, item));
    for (let group = 0; group < 4; group++) await settle(() => groups[group]?.succeed());
    await Promise.all(written);
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3], [9], [1]]);
  });

  test("starts groups at intervals unless one is full, and an idle writer without delay", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    try {
      const { groups, commit, settle } = writer({ intervalMs: 20 });
      const written = [commit(1)];
      await settle(() => groups[0]?.succeed());
      written.push(commit(2), commit(3));
      await endOfTurn();
      expect(groups).toHaveLength(1);
      vi.advanceTimersByTime(20);
      expect(groups.map(({ items }) => items)).toEqual([[1], [2, 3]]);
      await settle(() => groups[1]?.succeed());
      written.push(commit(4), commit(5), commit(6));
      await endOfTurn();
      expect(groups.map(({ items }) => items)).toEqual([[1], [2, 3], [4, 5, 6]]);
      await settle(() => groups[2]?.succeed());
      vi.advanceTimersByTime(20);
      written.push(commit(7));
      await endOfTurn();
      expect(groups).toHaveLength(4);
      groups[3]?.succeed();
      await Promise.all(written);
    } finally {
      vi.useRealTimers();
    }
  });

  test("resolves each with its own result", async () => {
    const commit = createGroupCommit<number, string>(
      async (items) => items.map((item) => `${item} of ${items.length}`),
      {
        max: 2,
        concurrent: 1,
      },
    );
    expect(await Promise.all([1, 2, 3].map(commit))).toEqual(["1 of 2", "2 of 2", "3 of 1"]);
  });

  test("rejects only the items of a failed group", async () => {
    const { groups, commit, settle } = writer({ max: 1 });
    const outcomes = [1, 2].map((item) =>
      commit(item).then(
        () => "written",
        (error: Error) => error.message,
      ),
    );
    await settle(() => groups[0]?.fail(new Error("disk")));
    await settle(() => groups[1]?.succeed());
    expect(await Promise.all(outcomes)).toEqual(["disk", "written"]);
  });

  test.each(["bus-unavailable", "database-unavailable"] as const)(
    "does not let those behind wait out a %s",
    async (code) => {
      const { groups, commit, settle } = writer({ max: 1 });
      const outcomes = [1, 2, 3].map((item) => commit(item).catch((error: HeraldError) => error.code));
      await settle(() => groups[0]?.fail(new HeraldError(code, "unavailable")));
      expect(await Promise.all(outcomes)).toEqual([code, code, code]);
      expect(groups).toHaveLength(1);
      const after = commit(4);
      await settle(() => groups[1]?.succeed());
      await after;
    },
  );

  test("limits waiting and unfinished bytes", async () => {
    const { groups, commit, settle } = writer({ maxBytes: 100 });
    const first = commit(1, 500);
    await expect(commit(2, 1)).rejects.toMatchObject({ code: "queue-full" });
    await settle(() => groups.shift()?.succeed());
    await first;
    const taken = [commit(3, 60), commit(4, 40)];
    await expect(commit(5, 1)).rejects.toMatchObject({ code: "queue-full" });
    const away = taken.map((written) => written.catch((error: HeraldError) => error.code));
    await settle(() => groups.shift()?.fail(new HeraldError("bus-unavailable", "unavailable")));
    expect(await Promise.all(away)).toEqual(["bus-unavailable", "bus-unavailable"]);
    const after = commit(6, 100);
    await settle(() => groups.shift()?.succeed());
    await after;
  });

  test("refuses items when too many wait", async () => {
    const { groups, commit } = writer({ waiting: 2 });
    const taken = [commit(1)];
    await endOfTurn();
    taken.push(commit(2), commit(3));
    await expect(commit(4)).rejects.toMatchObject({ code: "queue-full", retryAfterSeconds: 1 });
    for (let next = groups.shift(); next; next = groups.shift()) {
      next.succeed();
      await endOfTurn();
    }
    await Promise.all(taken);
  });

  test("lets keys take turns when more items wait than fit into a group", async () => {
    const groups: string[][] = [];
    let release: () => void = () => {};
    const commit = createGroupCommit<string, string>(
      async (items) => {
        groups.push([...items]);
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        return items;
      },
      { max: 3, concurrent: 1, keyOf: (item) => item[0] ?? "" },
    );
    const all = [commit("a0")];
    await endOfTurn();
    all.push(...["a1", "a2", "a3", "a4", "b1", "c1", "b2"].map((item) => commit(item)));
    for (let at = 0; at < all.length; at++) {
      release();
      await endOfTurn();
    }
    expect(await Promise.all(all)).toEqual(["a0", "a1", "a2", "a3", "a4", "b1", "c1", "b2"]);
    expect(groups).toEqual([["a0"], ["a1", "b1", "c1"], ["a2", "b2", "a3"], ["a4"]]);
  });

  test("writes the items of one call as if each came alone: in several groups, in turns with other keys, each with its own error", async () => {
    const groups: string[][] = [];
    const commit = createGroupCommit<string, string>(
      async (items) => {
        groups.push([...items]);
        if (items.includes("a4")) throw new Error("refused");
        return items.map((item) => (item === "a2" ? Promise.reject(new Error("alone")) : `${item}!`));
      },
      { max: 3, concurrent: 1, keyOf: (item) => item[0] ?? "" },
    );
    const several = commit.all(["a1", "a2", "a3", "a4"]);
    expect(await commit("b1")).toBe("b1!");
    expect(groups[0]).toEqual(["a1", "b1", "a2"]);
    const reason = (message: string) => ({ status: "rejected", reason: new Error(message) });
    expect(await several).toEqual([
      { status: "fulfilled", value: "a1!" },
      reason("alone"),
      ...[reason("refused"), reason("refused")],
    ]);
    expect(groups).toEqual([
      ["a1", "b1", "a2"],
      ["a3", "a4"],
    ]);
    expect(await commit.all([])).toEqual([]);
  });
});
