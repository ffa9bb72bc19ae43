// What a reader chose for this browser: theme and language.
import { signal } from "@preact/signals";

export type Theme = "light" | "dark";

function stored(key: string): string | null {
  try {
    return localStorage.getItem(`lakescope.${key}`);
  } catch {
    return null;
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(`lakescope.${key}`, value);
  } catch {
    // Without storage the choice holds until the page is left.
  }
}

export const theme = signal<Theme>(document.documentElement.dataset["theme"] === "dark" ? "dark" : "light");

export function setTheme(value: Theme): void {
  document.documentElement.dataset["theme"] = value;
  theme.value = value;
  store("theme", value);
}

export const turnTheme = (): void => setTheme(theme.value === "dark" ? "light" : "dark");

export type Language = "en" | "cs";

export function language(): Language {
  const chosen = stored("language") ?? navigator.language;
  return chosen.startsWith("cs") ? "cs" : "en";
}

export function setLanguage(value: Language): void {
  store("language", value);
  location.reload();
}
