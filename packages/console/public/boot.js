// Runs before everything else: takes the one-time code, or why a sign-in failed, out of the address, and sets the colours before the first paint.
(() => {
  const { hash, pathname, search } = location;
  const fragment = new URLSearchParams(hash.slice(1));
  const code = fragment.get("code");
  const refusal = fragment.get("sign-in");
  if (code || refusal) history.replaceState(null, "", pathname + search);
  if (code) window.heraldSignInCode = code;
  if (refusal) window.heraldSignInRefusal = refusal;
  let chosen = null;
  try {
    chosen = localStorage.getItem("herald-color-scheme");
  } catch {
    // Storage may be off: the system's setting serves.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
