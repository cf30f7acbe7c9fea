// Runs before everything else: takes the one-time code out of the address, and sets the colours before the first paint.
(() => {
  const { hash, pathname, search } = location;
  const code = new URLSearchParams(hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", pathname + search);
    window.heraldSignInCode = code;
  }
  let chosen = null;
  try {
    chosen = localStorage.getItem("herald-color-scheme");
  } catch {
    // Storage may be off: the system's setting serves.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
