"use strict";
/* One live stream of a page, for as long as it is of use. A browser keeps no more than six connections to a host, and
   each stream holds one: that of a page behind others is closed, and opened again once somebody looks. */

/* `open` returns a new EventSource, and is called again whenever one has ended for good. Of all pages that name the same
   `lock`, one keeps its stream also while nobody looks. Returns what ends it all. */
const follow = (open, lock) => {
  const FIRST_MS = 2000;
  const LONGEST_MS = 60000;
  /* A connection that a proxy has cut, or a stream that was at its end, is back sooner. */
  const LATE_MS = 10000;
  const stopped = document.getElementById("stopped");
  let source = null;
  let waiting = 0;
  let late = 0;
  let delay = FIRST_MS;
  let keeps = false;
  let ended = false;
  let turn = null;

  const arrived = () => {
    clearTimeout(late);
    late = 0;
  };

  /* Where the page is away, the browser connects again and again, and says of it no more than this. */
  const connecting = () => {
    late ||= setTimeout(() => {
      stopped.hidden = false;
    }, LATE_MS);
  };

  const close = () => {
    clearTimeout(waiting);
    arrived();
    source?.close();
    source = null;
  };

  const start = () => {
    close();
    source = open();
    connecting();
    source.addEventListener("open", () => {
      arrived();
      delay = FIRST_MS;
      stopped.hidden = true;
    });
    source.addEventListener("error", ({target}) => {
      /* A lost connection comes back by itself; after any answer but 200 the browser does not try again. */
      if (target.readyState !== EventSource.CLOSED) return connecting();
      stopped.hidden = false;
      waiting = setTimeout(start, delay);
      delay = Math.min(2 * delay, LONGEST_MS);
    });
  };

  const look = () => {
    if (ended || (document.hidden && !keeps)) close();
    else if (!source || source.readyState === EventSource.CLOSED) start();
  };

  const begin = () => {
    if (lock && navigator.locks) {
      turn = new AbortController();
      const {signal} = turn;
      const held = () => new Promise((done) => {
        keeps = true;
        signal.addEventListener("abort", done);
        look();
      });
      /* Only what is given up while it waits fails. */
      navigator.locks.request(lock, {signal}, held).catch(() => {});
    } else keeps = Boolean(lock);
    look();
  };

  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", () => {
    turn?.abort();
    keeps = false;
    close();
  });
  /* Whoever goes back may find the page as it was left, without its stream. */
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) begin();
  });
  begin();

  return () => {
    ended = true;
    close();
  };
};
