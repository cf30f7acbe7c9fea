import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { eventually } from "@herald/testing";
import { expect, onTestFinished, test } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { findZsh, type Zsh } from "./harness/zsh.ts";

const newHome = async (): Promise<string> => {
  const home = await mkdtemp(join(tmpdir(), "herald-completion-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  return home;
};

test("bash completes commands, options and choices", async () => {
  const complete = (line: string) =>
    `COMP_WORDS=(herald ${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _herald; echo "\${COMPREPLY[@]}"`;
  const script = [
    'eval "$(herald completion bash)"',
    complete("dev"),
    complete("provider set ''"),
    complete("send --pri"),
    complete("device list --status ''"),
    complete("stats --platform = a"),
    complete("notification list --status s"),
    complete("events follow --type io.herald.topic"),
  ];
  const { exitCode, stdout } = await commandLine({ HOME: await newHome() })
    .shell(script.join("\n"))
    .ended();
  expect([exitCode, stdout.split("\n")]).toEqual([
    0,
    [
      ...["device", "apns fcm webpush", "--priority", "active inactive", "android", "scheduled sending"],
      ...["io.herald.topic.created.v1 io.herald.topic.deleted.v1", ""],
    ],
  ]);
});

test("zsh completes commands, options, choices and files", async ({ skip }) => {
  const found: Zsh | string = await findZsh(process.env).catch((error: Error) => error.message);
  if (typeof found === "string") return skip(`zsh is needed to test its completion. ${found}`);
  const home = await newHome();
  await writeFile(join(home, "devices-of-1.ndjson"), "");
  const settings = [
    found.setup,
    "autoload -Uz compinit && compinit -u -D",
    'eval "$(herald completion zsh)"',
    `cd ${home}`,
    "PS1='ready> '",
  ];
  await writeFile(join(home, ".zshrc"), `${settings.join("\n")}\n`);
  const shell = commandLine({ HOME: home, ZDOTDIR: home, TERM: "dumb" }).terminal(`${found.executable} -i`, 200);
  const screen = () => stripVTControlCharacters(shell.written.stdout);
  await eventually(() => expect(screen()).toContain("ready> "), { timeoutMs: 30_000 });
  for (const [typed, completed] of [
    ["herald dev", "herald device "],
    ["herald device notif", "herald device notifications "],
    ["herald send --pri", "herald send --priority "],
    ["herald send --priority no", "herald send --priority normal "],
    ["herald provider set web", "herald provider set webpush "],
    ["herald device list --status in", "herald device list --status inactive "],
    ["herald device list --platform=an", "herald device list --platform=android "],
    ["herald device import devices-of", "herald device import devices-of-1.ndjson "],
  ] as const) {
    const before = screen().length;
    shell.type(`${typed}\t`);
    // zsh writes the completion, and uses backspaces before it rewrites text.
    await eventually(() => expect(replayed(screen().slice(before))).toContain(completed), { timeoutMs: 30_000 });
    shell.type("\u0015");
  }
  shell.type("exit\r");
  expect((await shell.ended()).exitCode).toBe(0);
});

/** The text of the line after applying backspaces. */
const replayed = (text: string): string => {
  const line: string[] = [];
  let at = 0;
  for (const character of text)
    if (character === "\b") at = Math.max(0, at - 1);
    else if (character === "\r") at = 0;
    else line[at++] = character;
  return line.join("");
};
