"use strict";
/* The page of a run, live: what the stream says leads to parts of the page being fetched again, so that only the server
   knows how anything looks. Without this script the page is the same, and is loaded again by hand. */
(() => {
  const run = document.querySelector("[data-live]");
  if (!run || !window.EventSource) return;
  const told = document.getElementById("told");
  const saying = document.getElementById("saying");
  const text = document.getElementById("saying-text");
  const QUIET_MS = 250;
  let waiting = 0;
  let loading = false;
  let again = false;
  /* The number of the last event that came. */
  let seen = "";
  /* What the model has said last, and the last answer that is whole. */
  let spoken = { position: 0, stream: 0, step: 0 };
  let whole = 0;

  const keyOf = (details, seen) => {
    const near = details.closest("[data-n], li[value], section");
    const key = `${near ? near.dataset.n || near.getAttribute("aria-labelledby") || near.value : ""}|${details.firstElementChild.textContent}`;
    seen.set(key, (seen.get(key) || 0) + 1);
    return `${key}|${seen.get(key)}`;
  };

  const take = (fresh) => {
    const old = document.getElementById(fresh.id);
    if (!old || old.innerHTML === fresh.innerHTML) return;
    let seen = new Map();
    const open = new Set();
    for (const details of old.querySelectorAll("details")) {
      const key = keyOf(details, seen);
      if (details.open) open.add(key);
    }
    old.replaceChildren(...document.importNode(fresh, true).childNodes);
    seen = new Map();
    for (const details of old.querySelectorAll("details")) if (open.has(keyOf(details, seen))) details.open = true;
  };

  const isWriting = () => [...run.querySelectorAll("textarea, input:not([type=hidden])")].some((field) => field.value);

  const load = async (ended) => {
    if (loading) {
      again = again || ended ? "ended" : "again";
      return;
    }
    loading = true;
    try {
      const answer = await fetch(window.location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        /* See page.js: what is pressed must stay until it is released. */
        if ("pressed" in document.body.dataset) await new Promise((done) => window.addEventListener("released", done, { once: true }));
        document.title = fresh.title;
        for (const part of fresh.querySelectorAll("[data-part]")) take(part);
        const forms = fresh.getElementById("steer");
        const mine = document.getElementById("steer");
        const idle = !isWriting() && !(mine && mine.contains(document.activeElement));
        if (ended && forms && mine && idle) mine.replaceWith(document.importNode(forms, true));
      }
    } catch {
      /* The stream comes back, and then this is tried again. */
    } finally {
      loading = false;
      if (again) {
        const kind = again;
        again = false;
        load(kind === "ended");
      }
    }
  };

  const soon = () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => load(false), QUIET_MS);
  };

  const hear = () => {
    const address = new URL(run.dataset.events, window.location.href);
    if (seen) address.searchParams.set("after", seen);
    const stream = new EventSource(address);
    stream.onmessage = (message) => {
      seen = message.lastEventId || seen;
      const event = JSON.parse(message.data);
      const over = event.name === "model.asked" || event.name === "model.failed";
      if (over && event.step_index >= spoken.step) {
        whole = spoken.stream;
        saying.hidden = true;
      }
      if (told) told.textContent = event.text;
      soon();
    };
    stream.addEventListener("state", soon);
    stream.addEventListener("model.delta", (message) => {
      const delta = JSON.parse(message.data);
      const { position, stream: own } = delta.data;
      /* After a lost connection some come again. */
      if (position <= spoken.position) return;
      if (own !== spoken.stream) text.textContent = "";
      spoken = { position, stream: own, step: delta.step_index };
      if (own <= whole) return;
      text.textContent += delta.text;
      saying.hidden = text.textContent === "";
    });
    stream.addEventListener("end", () => {
      end();
      saying.hidden = true;
      window.clearTimeout(waiting);
      load(true);
    });
    return stream;
  };
  const end = follow(hear);
})();
