// Logs can be dropped anywhere on the page or chosen; they go to this server and nowhere else.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Failure, OWN } from "../base/fetch.ts";
import { bytes } from "../base/units.ts";
import { go } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Icon } from "./icons.tsx";
import { ErrorBox } from "./states.tsx";

interface Kept {
  id: string;
  attempt: string | null;
  link: string;
}

const send = (file: File): Promise<Kept> =>
  ask<Kept>(`${OWN}/logs?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

export function Drop() {
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState("");
  const [error, setError] = useState<Failure | null>(null);
  const field = useRef<HTMLInputElement>(null);

  const take = async (files: FileList | null | undefined) => {
    const all = [...(files ?? [])];
    if (!all.length) return;
    setError(null);
    let last: Kept | null = null;
    try {
      for (const file of all) {
        setBusy(t.readingFile(file.name, bytes(file.size)));
        last = await send(file);
      }
    } catch (failure) {
      setError(failure as Failure);
      last = null;
    }
    setBusy("");
    if (last) go(all.length === 1 ? last.link : "/applications");
  };
  useWholePageDrop(setOver, take);

  return (
    <>
      {error && <ErrorBox error={error} what={t.logNotRead} />}
      <section class={`drop ${over ? "over" : ""}`} aria-label={t.dropTitle}>
        <Icon name="upload" />
        <p>
          <b>{busy || t.dropTitle}</b> <span class="dim">{t.dropNote}</span>
        </p>
        <button type="button" class="btn sm" disabled={busy !== ""} onClick={() => field.current?.click()}>
          {t.chooseFile}
        </button>
        <input
          ref={field}
          type="file"
          multiple
          hidden
          aria-label={t.chooseFile}
          onChange={(e) => void take(e.currentTarget.files)}
        />
      </section>
    </>
  );
}

function useWholePageDrop(setOver: (over: boolean) => void, take: (files: FileList | null | undefined) => Promise<void>): void {
  useEffect(() => {
    const has = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!has(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!event.relatedTarget) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!has(event)) return;
      event.preventDefault();
      setOver(false);
      void take(event.dataTransfer?.files);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}
