import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expectStatus, startRedirectingServer } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mavenOptions } from "../../infra/release/android.ts";
import manifest from "../../package.json" with { type: "json" };
import { blocksMissingIn } from "../harness/code-blocks.ts";
import { withMemoryLimit } from "../harness/memory-limit.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { claimsOf, hs256 } from "../harness/user-tokens.ts";

/** Of each process: Java reserves more than it takes. */
const maxGigabytes = 16;
const { version } = manifest;
const run = promisify(execFile);
const kit = join(import.meta.dirname, "../../kits/android");

const hasJava = await run("mvn", ["--version"]).then(
  () => true,
  () => false,
);
if (!hasJava) process.stderr.write("Android kit not tested: no Java and Maven\n");

describe.runIf(hasJava)("the kit for Android", () => {
  let system: System;
  let target: string;
  beforeAll(async () => {
    target = await mkdtemp(join(tmpdir(), "herald-android-"));
    system = await startSystem();
  });
  afterAll(async () => {
    await system?.stop();
    await rm(target, { recursive: true, force: true });
  });
  logOnFailure(() => system);

  test("its tests pass at a running Herald, and none is skipped", async () => {
    const project = await system.project("Android", ["fcm"]);
    expectStatus(await project.call("POST /topics", { body: { topic: { name: "news" } } }), 201);
    const { secret } = expectStatus(
      await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} }),
      201,
    ).body;
    for (const [name, kind] of Object.entries({
      offers: { title: "Offers" },
      security: { title: "Security", critical: true },
    }))
      expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/${name}`, { body: { kind } }), 201);
    const redirecting = await startRedirectingServer();
    const env = {
      ...process.env,
      MAVEN_OPTS: mavenOptions,
      HERALD_TEST_REDIRECTING: redirecting.url,
      HERALD_TEST_GATEWAY: system.gateway,
      HERALD_TEST_PROJECT: project.id,
      HERALD_TEST_TOKEN: project.token,
      HERALD_TEST_SIMULATORS: system.simulators.url,
      HERALD_TEST_USER_TOKEN: hs256(secret, { claims: claimsOf(project.id, "u-android") }),
    };
    const maven = ["--batch-mode", "--no-transfer-progress", `-Dkit.target=${target}`, "verify"];
    const [program, args] = withMemoryLimit(maxGigabytes, "mvn", maven);
    const { output, failed } = await run(program, [...args], { cwd: kit, env, maxBuffer: 64_000_000 }).then(
      ({ stdout }) => ({ output: stdout, failed: false }),
      (error: { stdout: string }) => ({ output: error.stdout, failed: true }),
    );
    await redirecting.stop();
    expect(redirecting.followed).toEqual([]);
    const [, ran, skipped] = /Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: (\d+)\s*$/m.exec(output) ?? [];
    expect({ failed, skipped, ran: Number(ran) > 0 }, output).toEqual({ failed: false, skipped: "0", ran: true });
  });

  test("is small, has Herald's version, and contains no class of Firebase", async () => {
    const aar = join(target, `herald-android-${version}.aar`);
    expect((await stat(aar)).size).toBeLessThanOrEqual(100_000);
    await run("unzip", ["-q", aar, "-d", join(target, "aar")]);
    const { stdout } = await run("unzip", ["-Z1", join(target, "aar/classes.jar")]);
    const classes = stdout.split("\n").filter((name) => name.endsWith(".class"));
    expect(classes).toContain("io/herald/Herald.class");
    expect(classes.filter((name) => !name.startsWith("io/herald/"))).toEqual([]);
    expect((await readdir(target)).filter((name) => name.includes(version))).toEqual(
      expect.arrayContaining(
        [".aar", ".pom", "-sources.jar", "-javadoc.jar"].map((end) => `herald-android-${version}${end}`),
      ),
    );
    const pom = await readFile(join(target, `herald-android-${version}.pom`), "utf8");
    const place = `repository/io/herald/herald-android/${version}/herald-android-${version}`;
    expect(await readFile(join(target, `${place}.pom`), "utf8")).toBe(pom);
    expect(pom).not.toMatch(/@\w+@/);
    const service = await readFile(join(kit, "src/main/kotlin/HeraldMessagingService.kt"), "utf8");
    expect(service.split("\n").length).toBeLessThanOrEqual(41);
  });

  test("an app that has only the release's Maven repository compiles the page's blocks", async () => {
    const consumer = join(import.meta.dirname, "consumer");
    const app = await readFile(join(consumer, "src/App.kt"), "utf8");
    const page = await readFile(join(kit, "../../docs/how-to/connect-an-android-app.md"), "utf8");
    // Gradle's own are Kotlin too.
    const missing = blocksMissingIn(app, page, "kotlin").filter((block) => !/^dependenc\w+ {/.test(block));
    expect(missing).toEqual([]);
    const unpacked = join(target, "unpacked");
    await run("unzip", ["-q", join(target, `herald-android-${version}-maven.zip`), "-d", unpacked]);
    // Where Gradle looks for `io.herald:herald-android`.
    const library = join(unpacked, `io/herald/herald-android/${version}/herald-android-${version}`);
    await run("unzip", ["-q", `${library}.aar`, "classes.jar", "-d", unpacked]);
    const [, stdlib] =
      /kotlin-stdlib<\/artifactId>\s*<version>([^<]+)/.exec(await readFile(`${library}.pom`, "utf8")) ?? [];
    const given = {
      "herald.classes": join(unpacked, "classes.jar"),
      "kotlin.stdlib.version": stdlib,
      target: join(target, "app"),
      firebase: join(kit, "src/firebase"),
    };
    const flags = Object.entries(given).map(([name, value]) => `-D${name}=${value}`);
    const [program, args] = withMemoryLimit(maxGigabytes, "mvn", [
      "--batch-mode",
      "--no-transfer-progress",
      ...flags,
      "compile",
    ]);
    const { code, stdout } = await run(program, [...args], {
      cwd: consumer,
      env: { ...process.env, MAVEN_OPTS: mavenOptions },
      maxBuffer: 64_000_000,
    }).then(
      (ran) => ({ code: 0, stdout: ran.stdout }),
      (error: { code: number; stdout: string }) => error,
    );
    expect(code, stdout).toBe(0);
    expect(await readdir(join(target, "app/classes/com/example/shop"))).toContain("MainActivity.class");
  });
});
