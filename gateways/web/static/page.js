"use strict";
/* Keys, and news as they happen. Everything on the page works without this, too. */

(() => {
  const body = document.body;

  /* News: the store has changed, so what is shown of it is asked for again. */
  const refresh = () => {
    const live = document.querySelector("#live[data-refresh]");
    if (live) htmx.ajax("GET", location.href, {target: "#live", select: "#live", swap: "outerHTML"});
  };

  /* A browser clicks only what is still there when the button of the mouse comes up, so news wait until then. */
  body.addEventListener("pointerdown", () => {
    body.dataset.pressed = "";
  });
  body.addEventListener("htmx:beforeSwap", (event) => {
    /* What a person has asked for, such as a search, is shown at once. */
    if (!("pressed" in body.dataset) || event.detail.requestConfig.elt !== body) return;
    event.detail.shouldSwap = false;
    window.addEventListener("released", refresh, {once: true});
  });
  const release = (event) => {
    if (!("pressed" in body.dataset) || event.buttons) return;
    delete body.dataset.pressed;
    /* The click comes next. */
    setTimeout(() => window.dispatchEvent(new Event("released")));
  };
  /* It may come up outside the window, or at the end of a drag. */
  for (const name of ["pointerup", "pointercancel", "pointermove"]) window.addEventListener(name, release);

  /* Whoever stands at a row stays there: the browser holds on to a row that is replaced, and scrolls away with it. */
  let held = null;
  body.addEventListener("htmx:beforeSwap", () => {
    const row = document.activeElement?.closest("#live [id]");
    held = row && {id: row.id, top: row.getBoundingClientRect().top};
  });
  body.addEventListener("htmx:afterSwap", () => {
    const row = held && document.getElementById(held.id);
    if (row) window.scrollBy(0, row.getBoundingClientRect().top - held.top);
  });

  const standing = (text) => {
    const place = document.getElementById("news");
    if (!place || place.dataset.told === text) return;
    place.dataset.told = text;
    const line = document.createElement("p");
    line.className = "notice";
    line.textContent = text;
    place.replaceChildren(line);
  };

  const ENDED = {decided: "It has been decided.", expired: "It has expired.", withdrawn: "It was withdrawn.", ended: "The run has ended."};

  const told = (name, text) => {
    const place = document.getElementById(name);
    if (!place) return;
    place.textContent = text;
    place.hidden = !text;
  };

  const aboutRequest = (news) => {
    if (!("waits" in body.dataset) || !("state" in news)) return;
    told("reminded", news.reminded);
    told("escalated", news.escalated);
    if (ENDED[news.state]) {
      for (const button of document.querySelectorAll("form.decide button")) button.disabled = true;
      standing(`${ENDED[news.state]} Open the page again to see how.`);
    } else if (news.votes > Number(body.dataset.votes)) {
      standing("Somebody has decided. Open the page again to see who.");
    } else if (news.people.length) {
      standing(`${news.people.join(", ")} ${news.people.length === 1 ? "is" : "are"} looking at this, too.`);
    }
  };

  /* Whoever wants to be told while the page is behind others says so once; the browser remembers it. */
  const undecided = () => "Notification" in window && Notification.permission === "default";
  const ask = document.getElementById("notify");
  if (ask && undecided()) {
    ask.hidden = false;
    ask.addEventListener("click", async () => {
      await Notification.requestPermission();
      ask.hidden = !undecided();
    });
  }
  const notify = (open) => {
    if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
    const text = `${open} ${open === 1 ? "request waits" : "requests wait"} for a decision`;
    new Notification("backstay", {body: text, tag: "backstay"}).addEventListener("click", () => window.focus());
  };

  /* A page that is opened behind others may be looked at much later. */
  let fresh = document.hidden ? false : null, open = Number(body.dataset.open);
  const hear = () => {
    /* Before a later stream, something may have happened that changes no number. */
    fresh = fresh === null;
    const source = new EventSource(body.dataset.events);
    source.addEventListener("news", (event) => {
      const news = JSON.parse(event.data);
      if (body.dataset.title) document.title = (news.open ? `(${news.open}) ` : "") + body.dataset.title;
      if (news.open > open) notify(news.open);
      open = news.open;
      aboutRequest(news);
      /* Something may have happened between the page and its first news. */
      const stale = "open" in body.dataset && String(news.open) !== body.dataset.open;
      if (!fresh || stale) refresh();
      fresh = false;
    });
    source.addEventListener("changed", refresh);
    return source;
  };
  /* One inbox tells of news also while nobody looks at it. */
  if (body.dataset.events) follow(hear, "open" in body.dataset ? "backstay-inbox" : "");

  /* Keys: they move the focus and never decide by themselves. */
  const move = (by) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
    const next = rows[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by, 0), rows.length - 1)];
    next.focus();
    next.scrollIntoView({block: "nearest"});
  };

  const button = (key) => {
    const found = document.querySelector(`[data-key="${key}"]`);
    if (found) return found.focus();
    const row = document.activeElement.closest("a[data-row]");
    if (row) location.href = `${row.href}#${key === "a" ? "approve" : "reject"}`;
  };

  const help = document.getElementById("keys");
  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    a: () => button("a"),
    r: () => button("r"),
    "/": () => document.getElementById("search")?.focus(),
    "?": () => help?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help?.open) return;
    const act = KEYS[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  for (const ticker of document.querySelectorAll("[data-tick]")) {
    ticker.hidden = false;
    ticker.addEventListener("click", () => {
      for (const box of document.querySelectorAll("input[name^='take.'], input[name='pick']")) box.checked = ticker.dataset.tick === "all";
    });
  }

  for (const opener of document.querySelectorAll("[data-opens]")) {
    opener.hidden = false;
    opener.addEventListener("click", () => document.getElementById(opener.dataset.opens)?.showModal());
  }

  /* A link such as …#approve leads to the button. */
  if (location.hash.length > 1) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.focus();
})();
