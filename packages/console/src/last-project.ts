const key = "herald-project";

/** The project that this browser showed last. Browser storage may be disabled. */
export const lastProject = {
  get: (): string | null => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  set: (id: string): void => {
    try {
      localStorage.setItem(key, id);
    } catch {}
  },
};
