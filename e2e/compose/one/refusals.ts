import assert from "node:assert/strict";
import { eventually } from "@herald/testing";
import { type Docker, waits } from "./container.ts";

/** What a start refuses, with the sentence that says what to do. */
export const refusals = async (docker: Docker, name: string, image: string): Promise<void> => {
  const volume = `${name}-refused`;
  const data = ["-v", `${volume}:/data`];
  const run = (options: readonly string[], ...args: string[]) => docker("run", "--rm", ...options, image, ...args);
  const write = (script: string) => docker("run", "--rm", ...data, "--entrypoint", "sh", image, "-c", script);
  await assert.rejects(run(data, "--simulator"), /--simulator is not an option; there is --simulators/);
  await assert.rejects(run([...data, "--user", "1000"]), /runs as user 1000; start it without --user/);
  await assert.rejects(run(["-v", `${volume}:/data:ro`]), /\/data cannot be written \(Read-only file system\)/);
  await assert.rejects(
    run([...data, "--memory", "300m"]),
    /may use 300 MiB of memory, and needs \d+: docker run --memory/,
  );
  await assert.rejects(run(["--tmpfs", "/data:size=100m"]), /\/data has \d+ MB of free disk, and needs 512/);
  await write("echo 7.1.0 >/data/version");
  await assert.rejects(run(data), /this is Herald 0\.1\.0, and Herald 7\.1\.0 has written \/data/);
  await write("rm /data/version; mkdir -p /data/postgresql/19");
  await assert.rejects(run(data), /\/data is of PostgreSQL 19, and this image has 18: make a backup/);
  await write("rm -r /data/postgresql");
  // A part that cannot run ends the container, with the part's own words above the reason.
  await assert.rejects(
    run([...data, "-e", "HERALD_GATEWAY_LIMIT_STREAMS=many"]),
    /gateway has ended three times in a minute/,
  );
  // A disk of 700 MB, which PostgreSQL and a file of 500 fill to four fifths.
  const full = `${name}-full`;
  await docker("run", "--detach", "--name", full, "--tmpfs", "/data:size=1g,exec", image);
  await docker("exec", full, "dd", "if=/dev/zero", "of=/data/ballast", "bs=1M", "count=850");
  await eventually(async () => assert.match(await docker("logs", full), /the disk of \/data is \d+ % full/), waits);
  await docker("rm", "--force", "--volumes", full);
};
