import { type ChildProcess, spawn } from "node:child_process";

/**
 * A shell that reads from a pipe to this process. When this process ends in any way (even by SIGKILL, where no handler runs), the pipe
 * closes. Then the shell stops the processes on its list, newest first, and removes the temporary folders on its list. It stops process
 * groups, not single pids, because a server's children must end too.
 */
const watchdogScript = `
trap '' INT TERM HUP
list=""
while read -r verb what; do
  case $verb in
    add) list="$what $list" ;;
    del) kept=""; for e in $list; do [ "\${e%%:*}" = "$what" ] || kept="$kept $e"; done; list=$kept ;;
    dir) dirs="$dirs$what
" ;;
  esac
done
alive() {
  kill -s 0 -- "-$1" 2>/dev/null || return 1
  case $(ps -o stat= -p "$1" 2>/dev/null) in Z*) return 1 ;; esac # ended, and its new parent is slow to notice
}
for e in $list; do
  pid=\${e%%:*}
  kill -s "\${e#*:}" -- "-$pid" 2>/dev/null || continue
  tries=0
  while alive "$pid" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -s KILL -- "-$pid" 2>/dev/null
done
printf '%s' "$dirs" | while IFS= read -r dir; do rm -rf -- "$dir"; done
`;

let watchdog: ChildProcess | undefined;

function tell(line: string): void {
  if (!watchdog || watchdog.exitCode !== null) {
    watchdog = spawn("sh", ["-c", watchdogScript, "herald-watchdog"], {
      detached: true, // outside the terminal's process group, so that Ctrl-C reaches only its parent
      stdio: ["pipe", "ignore", "ignore"],
    });
    watchdog.unref();
    watchdog.stdin?.on("error", () => {});
    const pipe = watchdog.stdin as unknown as { unref?: () => void } | null;
    pipe?.unref?.();
  }
  watchdog.stdin?.write(`${line}\n`);
}

/** Sends a signal to a process, or with a negative id to its group, unless it has ended. */
export function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch {
    // The process ended a moment ago.
  }
}

export const watch = (pid: number, signal: NodeJS.Signals): void => tell(`add ${pid}:${signal.slice(3)}`);
export const unwatch = (pid: number): void => tell(`del ${pid}`);

/** Removes the folder when this process ends, after all watched processes have stopped. */
export const removeAtExit = (folder: string): void => tell(`dir ${folder}`);
