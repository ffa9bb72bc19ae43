// Go anywhere and do anything by typing. It is part of the first load: the letters that follow its
// key at once belong to it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AppList, AppRow } from "../base/api.ts";
import { OWN, useData } from "../base/fetch.ts";
import { turnTheme } from "../base/settings.ts";
import { clock, day } from "../base/time.ts";
import { appPath, go, here, readAppPath } from "../base/url.ts";
import { t } from "../base/words.ts";
import { tabList } from "./tabs.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { copyLink } from "./toast.tsx";

interface Choice {
  text: string;
  note: string;
  icon: IconName;
  act: () => void;
}

const MOST = 60;

export function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useData<AppList>(`${OWN}/applications`);
  const choices = useMemo(() => match(allChoices(list.data?.applications ?? []), text), [list.data, text]);
  const listBox = useRef<HTMLUListElement>(null);
  useEffect(() => listBox.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.act();
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by) setAt((n) => Math.max(0, Math.min(choices.length - 1, n + by)));
    else if (event.key === "Enter") choose(choices[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label={t.find} close={close} class="palette">
      <div class="palette-field">
        <Icon name="search" />
        <input
          type="text"
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={choices.length ? `choice-${at}` : undefined}
          aria-label={t.find}
          placeholder={t.find}
          value={text}
          onKeyDown={press}
          onInput={(e) => {
            setText(e.currentTarget.value);
            setAt(0);
          }}
        />
      </div>
      <ul id="palette-list" role="listbox" ref={listBox} aria-label={t.find}>
        {choices.map((choice, i) => (
          <li
            key={i}
            id={`choice-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseMove={() => setAt(i)}
            onClick={() => choose(choice)}
          >
            <Icon name={choice.icon} />
            <span class="cut">{choice.text}</span>
            <span class="dim">{choice.note}</span>
          </li>
        ))}
      </ul>
      {!choices.length && <p class="dim palette-none">{t.nothingMatches}</p>}
    </Dialog>
  );
}

function allChoices(apps: AppRow[]): Choice[] {
  const place = readAppPath(here.value.path);
  const tabs: Choice[] = place
    ? tabList(null).map((tab) => ({
        text: tab.text,
        note: t.thisApplication,
        icon: "right",
        act: () => go(appPath(place.app, tab.key)),
      }))
    : [];
  const pages: Choice[] = [
    { text: t.applications, note: t.page, icon: "app", act: () => go("/applications") },
    {
      text: t.compare,
      note: t.page,
      icon: "compare",
      act: () => go(place ? `/compare?new=${encodeURIComponent(place.app.id)}` : "/compare"),
    },
    { text: t.read, note: t.page, icon: "paste", act: () => go("/read") },
    { text: t.calculator, note: t.page, icon: "shuffle", act: () => go("/tools/shuffle-calculator") },
    {
      text: t.keys.copyLink,
      note: t.action,
      icon: "link",
      act: () => {
        void copyLink();
      },
    },
    { text: t.keys.theme, note: t.action, icon: "moon", act: turnTheme },
  ];
  return [...tabs, ...pages, ...apps.map(appChoice)];
}

const appChoice = (app: AppRow): Choice => ({
  text: app.name,
  note: `${app.id} · ${day(app.started_ms)} ${clock(app.started_ms)}`,
  icon: app.failed ? "fail" : "app",
  act: () => go(appPath(app)),
});

/** Every typed word has to occur; a hit in the text itself comes before one in the note. */
function match(choices: Choice[], text: string): Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = choices.flatMap((choice) => {
    const main = choice.text.toLowerCase();
    const whole = `${main} ${choice.note.toLowerCase()}`;
    if (!words.every((word) => whole.includes(word))) return [];
    return [{ choice, score: words.filter((word) => main.includes(word)).length }];
  });
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map((s) => s.choice);
}
