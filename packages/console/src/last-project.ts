const key = "herald-project";

/** The project that this browser looked at last. Storage may be off. */
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
