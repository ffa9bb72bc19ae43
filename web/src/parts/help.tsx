// All keys that are answered now, and what lakescope is.
import { OWN, useData } from "../base/fetch.ts";
import { listKeys } from "../base/keys.ts";
import { language, setLanguage, type Language } from "../base/settings.ts";
import { t } from "../base/words.ts";
import { Seg } from "./bits.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icons.tsx";

const shown = (keys: string): string[] =>
  keys === " " ? [t.space] : keys.replace("mod+k", "Ctrl/⌘ K").replace("Escape", "Esc").split(" ");

interface Me {
  name: string | null;
  role: string | null;
}

/** Who one is, where the server knows; without tokens there is nobody to name. */
function SignedIn() {
  const me = useData<Me>(`${OWN}/me`).data;
  if (!me?.name || me.name === "anybody") return null;
  return (
    <form class="row" method="post" action="/logout">
      <span>
        {t.signedInAs} <b>{me.name}</b>
        {me.role && ` (${me.role})`}
      </span>
      <button type="submit" class="btn sm">
        {t.signOut}
      </button>
    </form>
  );
}

export default function HelpDialog({ close }: { close: () => void }) {
  return (
    <Dialog label={t.keysAndAbout} close={close} class="help-dialog">
      <div class="hd">
        <h2>{t.keys.title}</h2>
        <div class="r">
          <button type="button" class="btn ghost sm" onClick={close} aria-label={t.close}>
            <Icon name="close" />
          </button>
        </div>
      </div>
      <dl class="keylist">
        {listKeys().map((key) => (
          <div key={key.keys}>
            <dt>
              {shown(key.keys).map((k) => (
                <kbd key={k}>{k}</kbd>
              ))}
            </dt>
            <dd>{key.what}</dd>
          </div>
        ))}
      </dl>
      <div class="about">
        <p>
          <b>lakescope</b> {t.about}
        </p>
        <p>{t.aboutData}</p>
        <SignedIn />
        <Seg<Language>
          label={t.language}
          value={language()}
          options={[
            ["en", "English"],
            ["cs", "Čeština"],
          ]}
          onChange={setLanguage}
        />
      </div>
    </Dialog>
  );
}
