import { type ChildProcess, spawn } from "node:child_process";

/**
 * A shell that holds the read end of a pipe to this process. When this process ends, however it ends (also by SIGKILL,
 * where no handler runs), the pipe closes and the shell stops what is still on its list, newest first, then removes the
 * temporary folders it was told of. Process groups rather than pids, because a server's own children must go too.
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
      detached: true, // outside the terminal's process group, so that Ctrl-C reaches its parent and not it
      stdio: ["pipe", "ignore", "ignore"],
    });
    watchdog.unref();
    watchdog.stdin?.on("error", () => {});
    const pipe = watchdog.stdin as unknown as { unref?: () => void } | null;
    pipe?.unref?.();
  }
  watchdog.stdin?.write(`${line}\n`);
}

export const watch = (pid: number, signal: NodeJS.Signals): void => tell(`add ${pid}:${signal.slice(3)}`);
export const unwatch = (pid: number): void => tell(`del ${pid}`);

/** Removes the folder when this process ends, after everything that was watched has stopped. */
export const removeAtExit = (folder: string): void => tell(`dir ${folder}`);
