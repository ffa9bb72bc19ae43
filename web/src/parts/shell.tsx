// The frame around every page: side bar, top bar with the way back, palette and theme.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { onKey } from "../base/keys.ts";
import { theme, turnTheme } from "../base/settings.ts";
import { go, here } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Icon, Logo, type IconName } from "./icons.tsx";
import { lazy } from "./lazy.tsx";
import { Palette } from "./palette.tsx";
import { copyLink, Toast } from "./toast.tsx";

export interface Crumb {
  text: string;
  to?: string;
  code?: boolean;
}

/** Set by the page in view. */
export const crumbs = signal<Crumb[]>([]);
export const paletteOpen = signal(false);
export const helpOpen = signal(false);

const HelpDialog = lazy(() => import("./help.tsx"));

export function usePage(title: string, path: Crumb[]): void {
  const key = JSON.stringify(path);
  useEffect(() => {
    document.title = `${title} · lakescope`;
    crumbs.value = path;
  }, [title, key]);
}

const NAV: { to: string; icon: IconName; text: () => string; also?: string }[] = [
  { to: "/applications", icon: "app", text: () => t.applications },
  { to: "/compare", icon: "compare", text: () => t.compare },
  { to: "/read", icon: "paste", text: () => t.read },
  { to: "/tools/shuffle-calculator", icon: "shuffle", text: () => t.calculator },
];

function isOn(to: string): boolean {
  const { path } = here.value;
  return path === to || path.startsWith(`${to}/`) || (to === "/applications" && path === "/");
}

export function Side() {
  return (
    <nav class="side" aria-label={t.mainMenu}>
      <a class="brand" href="/applications">
        <Logo />
        <span>lakescope</span>
      </a>
      {NAV.map((item) => (
        <a
          key={item.to}
          href={item.to}
          class={isOn(item.to) ? "on" : ""}
          aria-current={isOn(item.to) ? "page" : undefined}
          title={item.text()}
        >
          <Icon name={item.icon} />
          <span>{item.text()}</span>
        </a>
      ))}
      <button
        type="button"
        class="end"
        onClick={() => {
          helpOpen.value = true;
        }}
        title={t.keysAndAbout}
      >
        <Icon name="help" />
        <span>{t.keysAndAbout}</span>
      </button>
    </nav>
  );
}

const MAC = /mac|iphone|ipad/i.test(navigator.platform);

export function Top() {
  return (
    <header class="top">
      <nav class="crumb" aria-label={t.youAreHere}>
        {crumbs.value.map((c, i) => (
          <span key={i} class={i === crumbs.value.length - 1 ? "last" : ""}>
            {i > 0 && <Icon name="right" />}
            {c.to ? <a href={c.to}>{c.text}</a> : c.code ? <code>{c.text}</code> : <b>{c.text}</b>}
          </span>
        ))}
      </nav>
      <span class="sp" />
      <button
        type="button"
        class="search"
        onClick={() => {
          paletteOpen.value = true;
        }}
        aria-label={t.find}
      >
        <Icon name="search" />
        <span>{t.find}</span>
        <kbd>{MAC ? "⌘ K" : "Ctrl K"}</kbd>
      </button>
      <button
        type="button"
        class="btn ghost"
        onClick={turnTheme}
        aria-label={theme.value === "dark" ? t.lightTheme : t.darkTheme}
        title={theme.value === "dark" ? t.lightTheme : t.darkTheme}
      >
        <Icon name={theme.value === "dark" ? "sun" : "moon"} />
      </button>
    </header>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  useEffect(globalKeys, []);
  return (
    <>
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <Side />
      <div class="main">
        <Top />
        <main class="page" id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Toast />
      {paletteOpen.value && (
        <Palette
          close={() => {
            paletteOpen.value = false;
          }}
        />
      )}
      {helpOpen.value && (
        <HelpDialog
          close={() => {
            helpOpen.value = false;
          }}
        />
      )}
    </>
  );
}

/** The page above this one: its tab, then its list. */
function upwards(): boolean {
  const up = crumbs.value.filter((c) => c.to).at(-1)?.to;
  if (!up || up === here.value.path) return false;
  go(up);
  return true;
}

function globalKeys(): () => void {
  const focusFilter = () => {
    const field = document.querySelector<HTMLInputElement>("[data-filter]");
    field?.focus();
    return field !== null;
  };
  const step = (by: number) => {
    const tabs = [...document.querySelectorAll<HTMLAnchorElement>("[data-tabs] a")];
    const at = tabs.findIndex((tab) => tab.getAttribute("aria-current"));
    tabs[(at + by + tabs.length) % tabs.length]?.click();
    return tabs.length > 0;
  };
  const off = [
    onKey("mod+k", t.keys.palette, () => {
      paletteOpen.value = true;
    }),
    onKey("/", t.keys.filter, focusFilter),
    onKey("g a", t.applications, () => go("/applications")),
    onKey("g c", t.compare, () => go("/compare")),
    onKey("g p", t.read, () => go("/read")),
    onKey("g s", t.calculator, () => go("/tools/shuffle-calculator")),
    onKey("[", t.keys.tabBack, () => step(-1)),
    onKey("]", t.keys.tabNext, () => step(1)),
    onKey("Escape", t.keys.back, upwards),
    onKey("y", t.keys.copyLink, () => {
      void copyLink();
    }),
    onKey("t", t.keys.theme, turnTheme),
    onKey("?", t.keys.help, () => {
      helpOpen.value = true;
    }),
  ];
  return () => off.forEach((remove) => remove());
}
