"use strict";
/* One live stream of a page, opened again whenever it has ended for good. */

/* `open` returns a new EventSource. Returns what ends it all. */
const follow = (open) => {
  const FIRST_MS = 2000;
  const LONGEST_MS = 60000;
  const stopped = document.getElementById("stopped");
  let source = null;
  let waiting = 0;
  let delay = FIRST_MS;
  let ended = false;

  const close = () => {
    clearTimeout(waiting);
    source?.close();
    source = null;
  };

  const start = () => {
    close();
    source = open();
    source.addEventListener("open", () => {
      delay = FIRST_MS;
      stopped.hidden = true;
    });
    source.addEventListener("error", ({target}) => {
      /* A lost connection comes back by itself; after any answer but 200 the browser does not try again. */
      if (target.readyState !== EventSource.CLOSED) return;
      stopped.hidden = false;
      waiting = setTimeout(start, delay);
      delay = Math.min(2 * delay, LONGEST_MS);
    });
  };

  window.addEventListener("pagehide", close);
  /* Whoever goes back may find the page as it was left, without its stream. */
  window.addEventListener("pageshow", (event) => {
    if (event.persisted && !ended) start();
  });
  start();

  return () => {
    ended = true;
    close();
  };
};
