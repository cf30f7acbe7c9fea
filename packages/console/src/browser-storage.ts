/** For a browser that refuses its storage: what is kept survives a change of page, but not a reload. */
const kept = new Map<string, string>();

/** Texts that this browser keeps, by key. */
export const browserStorage = {
  get: (key: string): string | undefined => {
    try {
      return localStorage.getItem(key) ?? kept.get(key);
    } catch {
      return kept.get(key);
    }
  },
  set: (key: string, text: string): void => {
    kept.set(key, text);
    try {
      localStorage.setItem(key, text);
    } catch {}
  },
};

/** The key of the project that this browser showed last. */
export const lastProjectKey = "herald-project";
