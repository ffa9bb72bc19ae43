// The browser's own dialog: it keeps the focus inside and gives it back.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog({
  label,
  close,
  children,
  class: extra = "",
}: {
  label: string;
  close: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key: what is typed after the dialog's key is meant for it.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const outside = (event: MouseEvent) => {
    if (event.target === dialog.current) close();
  };
  return (
    <dialog ref={dialog} class={extra} aria-label={label} onClose={close} onClick={outside}>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
